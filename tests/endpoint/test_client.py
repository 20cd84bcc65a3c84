"""A chat endpoint asked over HTTP: what is sent, what is tried again, and what is said at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from eval_tasks.endpoint import ChatEndpoint, RefusedError, Reply, client
from eval_tasks.errors import InfraError, UserError
from eval_tasks.records import EndpointAccess, EndpointConfig
from tests.endpoint.fake import CUT, Answer, FakeEndpoint, reply, serving

MESSAGES = [{"role": "user", "content": "Is it right?"}]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_FIRST_PAUSE", 0.001)


def ask(fake: FakeEndpoint, *, base_url: str = "", tries: int = 4, timeout: float = 5, key: str = "") -> Reply:
    config = EndpointConfig(base_url=base_url or fake.base_url, model="m", seed=7)
    access = EndpointAccess(api_key_env=key, timeout_seconds=timeout, tries=tries)
    with ChatEndpoint(config, access) as endpoint:
        return endpoint.ask(endpoint.body(MESSAGES, max_tokens=9, stop=["END"]))


def in_turn(answers: Sequence[Answer]) -> Any:
    return lambda body, number: answers[min(number, len(answers) - 1)]


def test_what_is_sent_and_what_is_taken() -> None:
    with serving(in_turn([reply("Verdict: yes", extra={"kept": True})])) as fake:
        found = ask(fake)
    assert fake.asked == [
        {"model": "m", "messages": MESSAGES, "temperature": 0, "seed": 7, "max_tokens": 9, "stop": ["END"]}
    ]
    assert (found.text, found.finish_reason, found.n_prompt_tokens, found.n_output_tokens) == (
        "Verdict: yes",
        "stop",
        11,
        3,
    )
    assert found.body["system_fingerprint"] == "fp_1"
    assert found.body["extra"] == {"kept": True}


def test_a_reply_without_text_is_an_empty_one() -> None:
    with serving(in_turn([reply(None, usage=None)])) as fake:
        assert (ask(fake).text, ask(fake).n_output_tokens) == ("", 0)


@pytest.mark.parametrize(
    "trouble",
    [
        (429, {"retry-after": "0"}, "slow down"),
        (429, {"retry-after": "nonsense"}, "slow down"),
        (503, {}, "<html>"),
        (500, {"retry-after": "Mon, 07 Sep 2020 10:00:00 GMT"}, ""),
        (200, {}, '{"choices": ['),
        (200, {}, "[" * 100_000),
        (200, {}, []),
        (200, {}, {"choices": []}),
        (200, {}, {"choices": [{"message": {"content": ["parts"]}}]}),
        (200, {}, {"error": {"message": "overloaded"}}),
        (200, {"content-encoding": "gzip"}, "not gzip"),
        CUT,
    ],
)
def test_what_may_pass_is_tried_again(trouble: Answer) -> None:
    with serving(in_turn([trouble, trouble, reply("yes")])) as fake:
        assert ask(fake).text == "yes"
    assert len(fake.asked) == 3


def test_what_does_not_pass_ends_after_its_tries() -> None:
    with (
        serving(in_turn([(503, {}, "maintenance")])) as fake,
        pytest.raises(InfraError, match=r"model 'm': HTTP 503: maintenance; tried 4 times, and what was answered is"),
    ):
        ask(fake)
    assert len(fake.asked) == 4


def test_nobody_at_the_address_is_said() -> None:
    with serving(in_turn([reply("yes")])) as fake:
        pass
    with pytest.raises(InfraError, match=r"ConnectError: .*; tried 2 times"):
        ask(fake, tries=2)


def test_an_endpoint_that_does_not_answer_in_time_is_tried_again() -> None:
    go_on = threading.Event()

    def script(body: dict[str, Any], number: int) -> Answer:
        if number == 0:
            go_on.wait(5)
        return reply("yes")

    with serving(script) as fake:
        assert ask(fake, timeout=0.2).text == "yes"
        go_on.set()
    assert len(fake.asked) == 2


def test_the_wait_that_is_asked_for_is_kept() -> None:
    with serving(in_turn([(429, {"retry-after": "0.5"}, ""), reply("yes")])) as fake:
        began = time.monotonic()
        ask(fake)
    assert time.monotonic() - began >= 0.5


def test_a_date_to_wait_for_is_read_and_a_long_wait_is_left_to_the_caller() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)
    with (
        serving(in_turn([(429, {"retry-after": later}, "quota")])) as fake,
        pytest.raises(InfraError, match=r"HTTP 429: quota; it asks to come back in (7199|7200) s"),
    ):
        ask(fake)
    assert len(fake.asked) == 1


def test_a_key_is_sent_and_one_that_is_refused_is_said_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(in_turn([reply("yes")]), key="sesame") as fake:
        monkeypatch.setenv("JUDGE_KEY", "sesame")
        assert ask(fake, key="JUDGE_KEY").text == "yes"
        monkeypatch.setenv("JUDGE_KEY", "open-barley")
        with pytest.raises(UserError, match=r"HTTP 401; the key in JUDGE_KEY is refused") as refused:
            ask(fake, key="JUDGE_KEY")
        with pytest.raises(UserError, match="it wants a key: name its variable in api_key_env"):
            ask(fake)
    assert "barley" not in str(refused.value)
    assert len(fake.asked) == 3


def test_a_key_that_is_not_set_is_named_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    with serving(in_turn([reply("yes")])) as fake, pytest.raises(UserError, match="variable JUDGE_KEY, which is not"):
        ask(fake, key="JUDGE_KEY")
    assert fake.asked == []


def test_a_body_that_echoes_the_key_is_shown_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sesame")
    with serving(in_turn([(400, {}, "your key sesame is fine")])) as fake, pytest.raises(RefusedError) as refused:
        ask(fake, key="JUDGE_KEY")
    assert str(refused.value) == "HTTP 400: your key *** is fine"


def test_a_key_at_the_edge_of_what_is_shown_is_masked_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sesame-street")
    body = "x" * 295 + "sesame-street"
    with serving(in_turn([(400, {}, body)])) as fake, pytest.raises(RefusedError) as refused:
        ask(fake, key="JUDGE_KEY")
    assert "ses" not in str(refused.value)


def test_a_key_that_no_header_can_carry_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "two\nlines")
    with serving(in_turn([reply("yes")])) as fake, pytest.raises(UserError, match="JUDGE_KEY holds characters") as no:
        ask(fake, key="JUDGE_KEY")
    assert "lines" not in str(no.value)
    assert fake.asked == []


@pytest.mark.parametrize(
    ("answer", "path", "error", "message"),
    [
        ((402, {}, "no credit"), "", InfraError, "HTTP 402: no credit; what was answered is kept"),
        ((405, {}, "wrong door"), "", UserError, "HTTP 405; check base_url and model: wrong door"),
        ((413, {}, "too large"), "", RefusedError, "HTTP 413: too large"),
        ((400, {}, "context too long"), "", RefusedError, "HTTP 400: context too long"),
        ((404, {}, "no such model"), "", UserError, "HTTP 404; check base_url and model: no such model"),
        (reply("yes"), "/other", UserError, "HTTP 404; check base_url"),
        ((307, {"location": "http://127.0.0.1:9/"}, ""), "", UserError, "HTTP 307; check base_url"),
    ],
)
def test_what_cannot_pass_is_said_at_once(answer: Answer, path: str, error: type[Exception], message: str) -> None:
    with serving(in_turn([answer])) as fake, pytest.raises(error, match=message):
        ask(fake, base_url=fake.base_url + path)
    assert len(fake.asked) == 1


def test_a_wait_ends_when_the_pod_is_to_stop() -> None:
    with serving(in_turn([(429, {"retry-after": "60"}, "")])) as fake:
        config = EndpointConfig(base_url=fake.base_url, model="m")
        began = time.monotonic()
        with (
            ChatEndpoint(config, EndpointAccess(), stopped=lambda: bool(fake.asked)) as endpoint,
            pytest.raises(InfraError, match="stopped; what was answered is kept"),
        ):
            endpoint.ask({})
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "error",
    [
        {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"], "flagged_input": "Is it..."}},
        {"code": "content_filter", "message": "flagged"},
        {"type": "Content_Policy_Violation", "message": "flagged"},
    ],
)
def test_a_403_that_moderates_a_prompt_refuses_that_question_alone(error: dict[str, Any]) -> None:
    with serving(in_turn([(403, {}, {"error": error}), reply("yes")])) as fake:
        with pytest.raises(RefusedError, match=r"HTTP 403: .*flagged"):
            ask(fake)
        assert ask(fake).text == "yes"
    assert len(fake.asked) == 2


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": 403, "message": "no such project", "metadata": {"reasons": []}}},
        {"error": {"code": "permission_denied", "type": 5}},
        {"error": "forbidden"},
        ["forbidden"],
    ],
)
def test_any_other_403_is_of_the_key(body: Any) -> None:
    with serving(in_turn([(403, {}, body)])) as fake, pytest.raises(UserError, match="HTTP 403; it wants a key"):
        ask(fake)
