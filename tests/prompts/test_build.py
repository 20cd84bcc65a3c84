from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.errors import UserError
from eval_tasks.prompts import PromptBuilder, build_requests, prompt_digest
from eval_tasks.records import (
    BenchmarkVersion,
    EngineConfig,
    FewShot,
    Item,
    PromptTemplate,
    ReasoningBlock,
    Sampling,
    ScorerRef,
)
from eval_tasks.tokenization import Tokenizer, load_tokenizer

CHAT = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
CHOICE = PromptTemplate(item="{{ q }}:", choices=("A", "B"))
TEXT = PromptTemplate(item="{{ q }}:", stop=("\n",))

MakeTokenizer = Callable[..., Tokenizer]
MakeBenchmark = Callable[..., BenchmarkVersion]
MakeItem = Callable[..., Item]


def test_a_request_of_each_kind(
    make_tokenizer: MakeTokenizer, make_benchmark: MakeBenchmark, make_item: MakeItem
) -> None:
    tokenizer, engine, item = make_tokenizer(), EngineConfig(), make_item("i", 0, q="x")
    ids = (0, *tokenizer.encode("x:"))
    (choice,) = build_requests(make_benchmark(CHOICE), [item], [], tokenizer, engine, 64)
    assert (choice.kind, choice.prompt, choice.choices, choice.prompt_ids) == ("choice", "x:", ("A", "B"), ids)
    assert choice.continuations == (tuple(tokenizer.encode(" A")), tuple(tokenizer.encode(" B")))
    assert (choice.stops, choice.max_tokens) == ((), 0)
    benchmark = make_benchmark(TEXT)
    (text,) = build_requests(benchmark, [item], [], tokenizer, engine, 64)
    assert (text.kind, text.prompt_ids, text.stops, text.max_tokens) == ("generation", ids, ("\n",), 8)
    assert text.benchmark_id == benchmark.benchmark_id
    assert text.prompt_digest == prompt_digest(ids, (), ("\n",), 8) != choice.prompt_digest
    (loss,) = build_requests(make_benchmark(TEXT, kind="loss"), [item], [], tokenizer, engine, 64)
    assert (loss.kind, loss.prompt_ids, loss.continuations, loss.n_bytes) == ("loss", (0,), (ids[1:],), 2)


def test_requests_depend_neither_on_order_nor_on_neighbours(
    make_tokenizer: MakeTokenizer, make_benchmark: MakeBenchmark, make_item: MakeItem
) -> None:
    tokenizer, engine = make_tokenizer(), EngineConfig()
    shots = [make_item(f"{n:03d}", q=f"shot {n}", a=str(n)) for n in range(20)]
    template = replace(TEXT, target="{{ a }}")
    benchmark = make_benchmark(template, few_shot=FewShot(k=2, select="seeded"))
    items = [make_item(f"i{n}", q=f"item {n}") for n in range(12)]
    together = {r.item_id: r for r in build_requests(benchmark, items, shots, tokenizer, engine, 512)}
    random.Random(1).shuffle(items)
    for item in items:
        (alone,) = build_requests(benchmark, [item], shots, tokenizer, engine, 512)
        assert replace(together[item.item_id], shared_prefix_tokens=0) == alone


def test_shared_prefix_is_what_a_neighbour_shares(
    make_tokenizer: MakeTokenizer, make_benchmark: MakeBenchmark, make_item: MakeItem
) -> None:
    items = [make_item("a", q="12345"), make_item("b", q="12399"), make_item("c", q="x")]
    requests = build_requests(make_benchmark(TEXT), items, [], make_tokenizer(), EngineConfig(), 64)
    assert [r.shared_prefix_tokens for r in requests] == [4, 4, 1]


def test_chat_by_policy(make_tokenizer: MakeTokenizer, make_benchmark: MakeBenchmark, make_item: MakeItem) -> None:
    plain, chat = make_tokenizer(), make_tokenizer(chat=CHAT)
    item = make_item("i", 0, q="x")

    def prompt(benchmark_policy: str, engine_policy: str, tokenizer: Tokenizer = chat, kind: str = "choice") -> str:
        benchmark = make_benchmark(replace(CHOICE, chat=benchmark_policy), kind=kind)  # type: ignore[arg-type]
        engine = EngineConfig(chat=engine_policy)  # type: ignore[arg-type]
        return build_requests(benchmark, [item], [], tokenizer, engine, 64)[0].prompt

    assert prompt("never", "auto") == prompt("auto", "auto") == prompt("always", "never") == "x:"
    assert prompt("always", "auto") == prompt("never", "always") == "<s><user>x:<assistant>"
    assert prompt("always", "auto", kind="loss") == "x:"
    with pytest.raises(UserError, match="no chat template"):
        prompt("always", "auto", plain)
    (request,) = build_requests(make_benchmark(CHOICE), [item], [], chat, EngineConfig(chat="always", bos="always"), 64)
    assert request.prompt_ids.count(0) == 1
    assert request.continuations[0] == tuple(chat.encode("A"))


def test_bos_of_the_engine_config_wins(
    make_tokenizer: MakeTokenizer, make_benchmark: MakeBenchmark, make_item: MakeItem
) -> None:
    tokenizer, item = make_tokenizer(), make_item("i", 0, q="x")
    benchmark = make_benchmark(replace(CHOICE, bos="always"))
    counts = {}
    for policy in ("auto", "never"):
        (request,) = build_requests(benchmark, [item], [], tokenizer, EngineConfig(bos=policy), 64)
        counts[policy] = request.prompt_ids.count(0)
    assert counts == {"auto": 1, "never": 0}


def test_long_prompts_are_flagged_or_refused_by_name(
    make_tokenizer: MakeTokenizer, make_benchmark: MakeBenchmark, make_item: MakeItem
) -> None:
    tokenizer = make_tokenizer()
    items = [make_item("short", q="x"), make_item("long", q="x" * 40), make_item("longer", q="x" * 50)]
    requests = build_requests(make_benchmark(TEXT), items, [], tokenizer, EngineConfig(), 20)
    assert [(r.prompt_truncated, len(r.prompt_ids)) for r in requests] == [(False, 3), (True, 12), (True, 12)]
    narrowed = build_requests(make_benchmark(TEXT), items, [], tokenizer, EngineConfig(max_context=20), 64)
    assert narrowed == requests
    benchmark = make_benchmark(TEXT, on_long_prompt="refuse")
    with pytest.raises(UserError, match=r"items 'long' \(30 tokens over\), 'longer' \(40 tokens over\); use fewer"):
        build_requests(benchmark, items, [], tokenizer, EngineConfig(), 20)


def test_a_context_without_room_for_the_answer_is_refused(
    make_tokenizer: MakeTokenizer, make_benchmark: MakeBenchmark, make_item: MakeItem
) -> None:
    with pytest.raises(UserError, match=r"benchmark 'toy' may write 8 tokens, and the context has 8: no room"):
        build_requests(make_benchmark(TEXT), [make_item(q="x")], [], make_tokenizer(), EngineConfig(), 8)
    assert build_requests(make_benchmark(TEXT), [make_item(q="x")], [], make_tokenizer(), EngineConfig(), 9)


def test_problems_and_merges_are_carried(
    make_tokenizer: MakeTokenizer, make_benchmark: MakeBenchmark, make_item: MakeItem
) -> None:
    template = PromptTemplate(item="{{ q }}", choices="options", target_delimiter="")
    items = [make_item("a", 0, q="xy", options=["z", "w"]), make_item("b", 0, q="xy", options=["", "w"])]
    requests = build_requests(make_benchmark(template), items, [], make_tokenizer(), EngineConfig(), 64)
    assert [(r.boundary_merge, r.problem) for r in requests] == [(True, ""), (False, "empty_continuation")]


def _token_logprob_pair(tokenizer: Any, context: str, continuation: str) -> tuple[list[int], list[int]]:
    """The reference's split: blanks move over, then the whole minus as many tokens as the context has."""
    blanks = len(context) - len(context.rstrip())
    if blanks:
        context, continuation = context[:-blanks], context[-blanks:] + continuation
    context_ids = tokenizer(context, add_special_tokens=False)["input_ids"]
    whole = tokenizer(context + continuation, add_special_tokens=False)["input_ids"]
    return context_ids, whole[len(context_ids) :]


@pytest.mark.golden
@pytest.mark.parametrize("model", ["stories260K-hf", "babyllama105-hf"])
def test_golden_tokenizers_split_as_the_reference_does(
    golden: Path, make_benchmark: MakeBenchmark, make_item: MakeItem, model: str
) -> None:
    transformers = pytest.importorskip("transformers")
    folder = golden / "models" / model
    theirs, ours = transformers.AutoTokenizer.from_pretrained(folder), load_tokenizer(folder)
    template = PromptTemplate(item="{{ q }}", choices=("dog", "a cat", "Lily."), bos="never")
    contexts = ["Once upon a time, there was a", "The end.\n\n", 'She said: " ', "Tom  and  "]
    items = [make_item(str(n), 0, q=context) for n, context in enumerate(contexts)]
    requests = build_requests(make_benchmark(template), items, [], ours, EngineConfig(), 256)
    for context, request in zip(contexts, requests, strict=True):
        for choice, ids in zip(request.choices, request.continuations, strict=True):
            expected = _token_logprob_pair(theirs, context, " " + choice)
            assert (list(request.prompt_ids), list(ids)) == expected


def test_a_sampled_benchmark_asks_with_its_sampling_and_the_run_s_seed(
    make_tokenizer: MakeTokenizer, make_benchmark: MakeBenchmark, make_item: MakeItem
) -> None:
    sampling = Sampling(temperature=0.6, samples=8, reason="why")
    block = ReasoningBlock(name="think", start="<think>", end="</think>")
    scorer = ScorerRef(name="gsm8k", version="1", reasoning=block)
    items = [make_item(q="x")]
    sampled = make_benchmark(TEXT, sampling=sampling, scorer=scorer)
    (request,) = PromptBuilder(sampled, [], make_tokenizer(), EngineConfig(), 512, 7).requests(items)
    assert (request.sampling, request.seed, request.reasoning) == (sampling, 7, block)
    (plain,) = PromptBuilder(make_benchmark(TEXT), [], make_tokenizer(), EngineConfig(), 512, 7).requests(items)
    assert (plain.sampling, plain.seed, plain.reasoning) == (None, 0, None)
    assert plain.prompt_ids == request.prompt_ids
    assert plain.prompt_digest != request.prompt_digest


def test_a_prompt_that_opens_a_reasoning_block_needs_begins_open(
    make_tokenizer: MakeTokenizer, make_benchmark: MakeBenchmark, make_item: MakeItem
) -> None:
    chat = make_tokenizer(chat="{% for m in messages %}{{ m.content }}{% endfor %}<think>\n")
    block = ReasoningBlock(name="think", start="<think>", end="</think>")
    engine, items = EngineConfig(chat="always"), [make_item(q="<think> is a word")]
    for begins_open in (False, True):
        rule = replace(block, begins_open=begins_open)
        benchmark = make_benchmark(TEXT, scorer=ScorerRef(name="gsm8k", version="1", reasoning=rule))
        assert len(build_requests(benchmark, items, [], make_tokenizer(), EngineConfig(), 512)) == 1
        if begins_open:
            assert len(build_requests(benchmark, items, [], chat, engine, 512)) == 1
            continue
        with pytest.raises(UserError, match=r"item 'i': the prompt ends in '<think>'.*'begins_open: true'"):
            build_requests(benchmark, items, [], chat, engine, 512)
