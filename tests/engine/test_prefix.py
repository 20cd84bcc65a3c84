"""What sequences have in common is read once: what is shared, what is kept, and within which bound."""

from __future__ import annotations

import pytest

from eval_tasks.engine.prefix import Path, PrefixPaths
from eval_tasks.engine.verification import identities
from eval_tasks.records import EngineTuning


@pytest.fixture
def paths(load) -> PrefixPaths:
    return PrefixPaths(load("llama")._body, 1 << 20, shared=True)


def _questions(ask, n: int, preamble: int = 130, start: int = 0):
    head = [7 + start] * preamble
    return [
        ask("choice", (*head, *range(3, 20 + i)), item_id=f"{start}-{i}", continuations=((4,), (5,))) for i in range(n)
    ]


def test_a_path_knows_how_far_a_sequence_goes_along() -> None:
    path = Path(cache=None)
    assert path.common((1, 2)) == 0
    path.ids = (1, 2, 3)
    assert [path.common(ids) for ids in [(), (2,), (1, 2), (1, 2, 3, 4), (1, 5, 3)]] == [0, 0, 2, 3, 1]


def test_a_sequence_goes_on_where_it_parts_from_the_last_one(paths: PrefixPaths) -> None:
    sequences = [(*[5] * 40, 2, 3), (*[5] * 40, 1), (9, 9)]
    assert paths.order(sequences) == [1, 0, 2]
    first, start = paths.enter(sequences[1], 40)
    assert start == 0
    second, start = paths.enter(sequences[0], 41)
    assert (start, second is first) == (40, True)
    third, start = paths.enter(sequences[2], 1)
    assert (start, third is first) == (0, False)
    assert (paths.n_read_tokens, paths.n_reused_tokens) == (41 + 2 + 2, 40)


def test_a_position_that_is_predicted_from_is_read_again(paths: PrefixPaths) -> None:
    ids = (3,) * 50
    paths.order([ids, ids])
    assert paths.enter(ids, 49)[1] == 0
    assert paths.enter(ids, 49)[1] == 49


def test_kept_paths_come_first(paths: PrefixPaths) -> None:
    paths.order([(7,) * 40])
    paths.enter((7,) * 40, 39)
    assert paths.order([(1, 2), (*[7] * 40, 3)]) == [1, 0]


def test_a_preamble_is_read_once_and_kept_across_calls(load, ask) -> None:
    engine = load("llama").with_prefix("shared")
    questions = _questions(ask, 6)
    first = engine.respond(questions[:4])
    assert engine.paths.n_reused_tokens >= 3 * 130
    before = engine.paths.n_read_tokens
    second = engine.respond(questions[4:5])
    assert engine.paths.n_read_tokens - before <= 21
    plain = load("llama").respond(questions[:5])
    assert identities([*first, *second]) == identities(plain)


def test_long_choices_are_read_from_the_end_of_their_prompt(load, ask) -> None:
    engine = load("llama").with_prefix("shared")
    request = ask("choice", range(3, 153), continuations=((4, 5), (6, 7), (8, 9, 10)))
    (found,) = engine.respond([request])
    assert (engine.paths.n_read_tokens, engine.paths.n_reused_tokens) == (150 + 1 + 1 + 2, 3 * 150)
    assert identities([found]) == identities(load("llama").respond([request]))


def test_generations_share_their_preamble(load, ask) -> None:
    engine = load("llama").with_prefix("shared")
    requests = [ask("generation", (*[9] * 70, *range(3, 10 + i)), item_id=str(i), max_tokens=70) for i in range(5)]
    found = engine.respond(requests)
    assert engine.paths.n_reused_tokens >= 4 * 70
    assert identities(found) == identities(load("llama").respond(requests))


def test_paths_stay_within_their_bound_between_calls(load, ask) -> None:
    """Preambles that take turns, and room for less than two: results do not change."""
    engine = load("llama").with_prefix("shared")
    questions = _questions(ask, 3) + _questions(ask, 3, start=1)
    expected = identities(load("llama").respond(questions))
    bound = int(1.5 * 192 * engine._body.position_bytes)
    engine.paths = PrefixPaths(engine._body, bound, shared=True)
    for _ in range(2):
        assert identities(engine.respond(questions)) == expected
        assert 0 < engine.paths.n_bytes <= bound
    assert engine.paths.n_reused_tokens > 4 * 130


def test_a_path_that_grows_takes_the_room_of_the_others(paths: PrefixPaths) -> None:
    short = [tuple([n] * 40) for n in (3, 4, 5)]
    for ids in short:
        paths.order([ids])
        paths.enter(ids, 39)
    paths._max_bytes = paths.n_bytes + 1
    long = (*short[2], *[9] * 300)
    paths.order([long])
    assert paths.enter(long, 339)[1] == 40
    assert [path.ids for path in paths._paths] == [long]


def test_without_room_nothing_is_kept(load, ask) -> None:
    engine = load("llama").with_prefix("shared").tuned(EngineTuning(prefix_cache_mb=0))
    questions = _questions(ask, 3)
    assert identities(engine.respond(questions)) == identities(load("llama").respond(questions))
    assert engine.paths.n_bytes == 0


def test_without_sharing_every_sequence_is_read_whole(load, ask) -> None:
    engine = load("llama").with_prefix("none")
    engine.respond(_questions(ask, 3))
    assert engine.paths.n_reused_tokens == 0


def test_a_failed_forward_leaves_no_path_that_names_what_was_not_read(load, ask, monkeypatch) -> None:
    engine = load("llama").with_prefix("shared").tuned(EngineTuning(tokens_per_forward=64))
    questions = _questions(ask, 2)
    with monkeypatch.context() as patch:
        patch.setattr(engine._body, "_run", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.respond(questions)
    assert identities(engine.respond(questions)) == identities(load("llama").respond(questions))


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
