"""The cache of shared leading tiles: what is shared, what is kept, and within which bound."""

from __future__ import annotations

from eval_tasks.engine.prefix import chain_of, shared_chains
from eval_tasks.engine.sentinels import identities
from eval_tasks.records import EngineTuning


def test_a_chain_names_whole_tiles_by_all_tokens_before_their_end() -> None:
    a = chain_of([1] * 200, 199)
    assert len(a) == 3
    assert a == chain_of([1] * 192 + [2] * 8, 200)
    b = chain_of([2] + [1] * 199, 200)
    assert len(b) == 3
    assert not set(a) & set(b)
    assert chain_of([1] * 64, 63) == ()
    assert len(chain_of([1] * 64, 64)) == 1


def test_what_is_shared_is_the_longest_common_start() -> None:
    a, b, c = chain_of([1] * 256, 256), chain_of([1] * 128 + [2] * 128, 256), chain_of([3] * 128, 128)
    assert shared_chains([a, b, c]) == [a[:2], b[:2], ()]
    assert shared_chains([a, a]) == [a, a]


def _questions(ask, n: int, preamble: int = 130, start: int = 0):
    head = [7 + start] * preamble
    return [
        ask("choice", (*head, *range(3, 20 + i)), item_id=f"{start}-{i}", continuations=((4,), (5,))) for i in range(n)
    ]


def test_a_preamble_is_computed_once_and_kept_across_calls(load, ask) -> None:
    engine = load("llama").with_prefix("shared")
    questions = _questions(ask, 6)
    first = engine.respond(questions[:4])
    assert (engine.prefix.n_computed_tiles, engine.prefix.n_reused_tiles) == (2, 8)
    second = engine.respond(questions[4:5])
    assert (engine.prefix.n_computed_tiles, engine.prefix.n_reused_tiles) == (2, 10)
    plain = load("llama").respond(questions[:5])
    assert identities([*first, *second]) == identities(plain)


def test_a_hint_keeps_the_preamble_of_a_single_item(load, ask) -> None:
    import dataclasses

    engine = load("llama").with_prefix("shared")
    hinted, unhinted = _questions(ask, 2)
    hinted = dataclasses.replace(hinted, shared_prefix_tokens=130)
    engine.respond([hinted])
    assert engine.prefix.n_computed_tiles == 2
    engine.respond([unhinted])
    assert (engine.prefix.n_computed_tiles, engine.prefix.n_reused_tiles) == (2, 4)


def test_long_choices_share_their_context(load, ask) -> None:
    engine = load("llama").with_prefix("shared")
    request = ask("choice", range(3, 153), continuations=((4, 5), (6, 7), (8, 9, 10)))
    (found,) = engine.respond([request])
    assert (engine.prefix.n_computed_tiles, engine.prefix.n_reused_tiles) == (2, 6)
    assert identities([found]) == identities(load("llama").respond([request]))


def test_generations_share_their_preamble(load, ask) -> None:
    engine = load("llama").with_prefix("shared")
    requests = [ask("generation", (*[9] * 70, *range(3, 10 + i)), item_id=str(i), max_tokens=70) for i in range(5)]
    found = engine.respond(requests)
    assert engine.prefix.n_reused_tiles == 5
    assert identities(found) == identities(load("llama").respond(requests))


def test_the_cache_stays_within_its_bound(load, ask) -> None:
    """Two preambles of two tiles, and room for three: one stays whole, and results do not change."""
    engine = load("llama").with_prefix("shared")
    tile = engine.prefix.tile_bytes
    small = engine.tuned(EngineTuning(prefix_cache_mb=0))
    small.prefix.max_tiles = 3
    questions = _questions(ask, 3) + _questions(ask, 3, start=1)
    expected = identities(load("llama").respond(questions))
    for _ in range(2):
        assert identities(small.respond(questions)) == expected
        assert small.prefix.n_bytes <= 3 * tile
    assert small.prefix.n_reused_tiles > 0


def test_without_room_nothing_is_kept(load, ask) -> None:
    engine = load("llama").with_prefix("shared").tuned(EngineTuning(prefix_cache_mb=0))
    questions = _questions(ask, 3)
    assert identities(engine.respond(questions)) == identities(load("llama").respond(questions))
    assert (engine.prefix.n_bytes, engine.prefix.n_reused_tiles) == (0, 0)
