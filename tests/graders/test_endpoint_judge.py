"""A chat endpoint as a judge: resumed without asking twice, replies kept, marked as not reproducible."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.compare.graders import GradersOnRecord
from eval_tasks.endpoint import client
from eval_tasks.errors import InfraError, UserError
from eval_tasks.graders import environment_for
from eval_tasks.records import Plan
from eval_tasks.settings import Config, EnvironmentSpec
from eval_tasks.store import Grader, Store
from tests.answered import answered, checkpoint
from tests.endpoint.fake import Answer, FakeEndpoint, reply, serving
from tests.graders.judged import finish_it, plan_it, register, run_it, write_judge
from tests.planned import N_GENERATED

__all__ = ["answered", "checkpoint"]

Answered = Callable[..., str]
PROMPT = "{{ question }} | {{ output }}"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_FIRST_PAUSE", 0.001)


def registered(store: Store, folder: Path, fake: FakeEndpoint, **endpoint: Any) -> Grader:
    file = write_judge(
        folder,
        None,
        kind="endpoint",
        prompt={"item": PROMPT, "system": "You check sums.", "stop": ["END"]},
        answers={"yes": 1, "no": 0},
        verdict={"max_tokens": 40},
        endpoint={"base_url": fake.base_url, "model": "judge", "tries": 2, **endpoint},
    )
    return register(store, file)


def planned(store: Store, run_id: str) -> Plan:
    made = plan_it(store, run_id, "helpful")
    assert made is not None
    return made


def number_of(body: dict[str, Any]) -> int:
    """Which item a question is about: outputs are `The answer is n.`"""
    return int(body["messages"][1]["content"].split("answer is ")[1].rstrip("."))


def scores(store: Store, run_id: str, grader: Grader) -> list[dict[str, Any]]:
    benchmark_id = store.catalog.benchmark("colour-sums").benchmark_id
    rows: list[dict[str, Any]] = store.scores.read(run_id, benchmark_id, grader.grader).to_pylist()
    return rows


def test_an_endpoint_judges_and_its_replies_are_kept(store: Store, answered: Answered, tmp_path: Path) -> None:
    run_id = answered()

    def script(body: dict[str, Any], number: int) -> Answer:
        n = number_of(body)
        time.sleep(0.02 * (n % 4 == 0))  # the first of each wave comes last
        return reply(f"So.\nVerdict: {'yes' if n % 2 else 'no'}", id=f"r{n}")

    with serving(script) as fake:
        grader = registered(store, tmp_path, fake, concurrency=3)
        assert not grader.reproducible
        made = planned(store, run_id)
        assert [shard.group for shard in made.shards] == ["generation"]
        run_it(store, made)
        assert plan_it(store, run_id, "helpful") is None
        finish_it(store, run_id, "helpful")
    assert len(fake.asked) == N_GENERATED
    assert 1 < fake.most_at_once <= 3
    assert fake.asked[0]["messages"][0] == {"role": "system", "content": "You check sums."}
    assert {key: fake.asked[0][key] for key in ("temperature", "seed", "max_tokens", "stop")} == {
        "temperature": 0,
        "seed": 0,
        "max_tokens": 40,
        "stop": ["END"],
    }
    rows = scores(store, run_id, grader)
    assert [row["value"] for row in rows] == [float(n % 2) for n in range(N_GENERATED)]
    assert json.loads(rows[5]["detail"]) == {
        "reply": "So.\nVerdict: yes",
        "served_model": "judge-2026",
        "fingerprint": "fp_1",
        "reply_id": "r5",
    }
    kept = store.replies.kept(made.run_id, "g005")
    assert kept is not None
    assert kept["body"]["choices"][0]["message"]["content"] == "So.\nVerdict: yes"
    run = store.catalog.run(made.run_id)
    assert (run.origin, run.env_fingerprint is not None, run.request.checkpoint_id) == ("endpoint", True, "")
    note = f"{grader.grader} is NOT REPRODUCIBLE: its verdicts are replies of an endpoint"
    assert note in GradersOnRecord(store).notes(grader.grader, "colour-sums")


def test_what_was_answered_is_not_asked_again(store: Store, answered: Answered, tmp_path: Path) -> None:
    run_id = answered()
    down = True

    def script(body: dict[str, Any], number: int) -> Answer:
        if down and number_of(body) == 11:
            time.sleep(0.05)
            return 503, {}, "down"
        return reply("Verdict: yes")

    with serving(script) as fake:
        registered(store, tmp_path, fake)
        made = planned(store, run_id)
        with pytest.raises(InfraError, match="HTTP 503: down; tried 2 times, and what was answered is kept"):
            run_it(store, made)
        [shard] = store.catalog.shards(made.run_id)
        assert (shard.status, "HTTP 503" in shard.reason) == ("failed", True)
        with pytest.raises(InfraError, match="batches have no result"):
            finish_it(store, run_id, "helpful")
        down = False
        before = len(fake.asked)
        assert planned(store, run_id).run_id == made.run_id
        run_it(store, made)
        finish_it(store, run_id, "helpful")
    numbers = [number_of(body) for body in fake.asked]
    assert {n: numbers.count(n) for n in numbers if numbers.count(n) > 1} == {11: 3}
    assert before >= 11 + 1


def test_questions_that_are_refused_are_missing_and_the_rest_is_judged(
    store: Store, answered: Answered, tmp_path: Path
) -> None:
    run_id = answered()

    def script(body: dict[str, Any], number: int) -> Answer:
        if number_of(body) in (0, 9):
            return 400, {}, {"error": "content policy"}
        return reply("Verdict: yes", system_fingerprint=f"fp_{number_of(body) % 2}")

    with serving(script) as fake:
        grader = registered(store, tmp_path, fake)
        run_it(store, planned(store, run_id))
        finish_it(store, run_id, "helpful")
    rows = scores(store, run_id, grader)
    assert {n for n, row in enumerate(rows) if row["status"] == "missing"} == {0, 9}
    assert rows[9]["value"] is None
    assert rows[9]["reason"] == ('judge: the endpoint refuses this question: HTTP 400: {"error": "content policy"}')


def test_an_endpoint_that_served_two_models_is_told_of(
    store: Store, answered: Answered, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = answered()
    with serving(lambda body, _: reply("Verdict: no", system_fingerprint=f"fp_{number_of(body) % 2}")) as fake:
        registered(store, tmp_path, fake)
        run_it(store, planned(store, run_id))
        finish_it(store, run_id, "helpful")
    assert "the endpoint served several models: judge-2026 fp_0 (18), judge-2026 fp_1 (18)" in caplog.text


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ((400, {}, "no seed here"), UserError, "every question so far came back, the first one so: .* no seed here"),
        ((401, {}, ""), UserError, "it wants a key"),
        ((200, {}, "<html>"), InfraError, "a body that is no chat completion .*: <html>; tried 2 times"),
    ],
)
def test_an_endpoint_that_answers_nothing_fails_the_shard_and_keeps_nothing(
    store: Store, answered: Answered, tmp_path: Path, answer: Answer, error: type[Exception], message: str
) -> None:
    run_id = answered()
    works = False
    with serving(lambda *_: reply("Verdict: yes") if works else answer) as fake:
        grader = registered(store, tmp_path, fake)
        made = planned(store, run_id)
        with pytest.raises(error, match=message):
            run_it(store, made)
        assert store.queue.results(made.run_id) == {}
        works = True
        run_it(store, made)
        finish_it(store, run_id, "helpful")
    assert {row["status"] for row in scores(store, run_id, grader)} == {"ok"}


def test_a_key_that_is_not_set_is_named_before_anything_is_asked(
    store: Store, answered: Answered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    run_id = answered()
    with serving(lambda *_: reply("Verdict: yes"), key="sesame") as fake:
        registered(store, tmp_path, fake, api_key_env="JUDGE_KEY")
        made = planned(store, run_id)
        with pytest.raises(UserError, match="JUDGE_KEY, which is not set here"):
            run_it(store, made)
        assert fake.asked == []
        monkeypatch.setenv("JUDGE_KEY", "sesame")
        run_it(store, made)
    assert b"sesame" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_an_endpoint_is_asked_from_where_no_gpu_is_held(store: Store, tmp_path: Path) -> None:
    with serving(lambda *_: reply("yes")) as fake:
        grader = registered(store, tmp_path, fake)
    gpu = EnvironmentSpec(name="gpu", device="cuda", gpus=1)
    small = EnvironmentSpec(name="small")
    mock = EnvironmentSpec(name="mock", engine="mock")
    assert environment_for(Config(environments=(gpu, small, mock)), grader) == small
    with pytest.raises(UserError, match="cannot run in environment 'mock': its engine is a mock"):
        environment_for(Config(environments=(small, mock)), grader, "mock")


def test_how_an_endpoint_is_reached_may_change_and_what_it_is_may_not(store: Store, tmp_path: Path) -> None:
    with serving(lambda *_: reply("yes")) as fake:
        first = registered(store, tmp_path, fake)
        again = registered(store, tmp_path, fake, timeout_seconds=9.5, api_key_env="OTHER")
        assert again.grader == first.grader
        assert again.judge is not None
        assert (again.judge.access.timeout_seconds, again.judge.access.api_key_env) == (9.5, "OTHER")
        with pytest.raises(UserError, match=r"\(engine differ\)"):
            registered(store, tmp_path, fake, seed=1)


@pytest.mark.parametrize("url", ["host/v1", "ftp://host", "https://me:secret@host/v1", "https://host/v1?key=secret"])
def test_a_url_that_is_none_or_holds_a_secret_is_refused(store: Store, tmp_path: Path, url: str) -> None:
    fake = FakeEndpoint(lambda *_: reply(""), base_url=url)
    with pytest.raises(UserError, match=r"endpoint\.base_url"):
        registered(store, tmp_path, fake)
