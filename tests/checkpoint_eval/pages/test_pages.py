"""Every page by every role, on an empty store and a full one: shown, escaped, without an outside host."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fastapi import FastAPI

from eval_tasks.records import Alert
from eval_tasks.register import register_benchmark
from eval_tasks.store import Store
from tests.checkpoint_eval.pages.conftest import UNDER, Client
from tests.planned import NOW, write_suite

LISTS = (
    "runs",
    "training-runs",
    "comparisons",
    "benchmarks",
    "graders",
    "rules",
    "determinism",
    "alerts",
    "costs",
    "release",
)
HOSTILE = "<script>alert(1)</script>"


class Outline(HTMLParser):
    """Checks that tags are balanced, and collects ids, links and headings."""

    VOID = frozenset({"meta", "link", "input", "br", "img", "use", "path"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.scripts: list[str | None] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [found["href"] or ""] if tag == "a" and "href" in found else []
        self.scripts += [found.get("src")] if tag == "script" else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def page(client: Client, path: str, role: str = "viewer") -> str:
    answer = client(role).get(f"{UNDER}/{path}")
    assert answer.status_code == 200, answer.text
    outline = Outline(answer.text)
    assert len(outline.ids) == len(set(outline.ids)), "an id twice"
    assert outline.scripts == ["/checkpoint-eval/ui/static/pages.js"]
    assert not re.findall(r'(?:src|href|action)="(?:https?:)?//', answer.text), "an outside host"
    assert "'unsafe-inline'" not in answer.headers["content-security-policy"].split("script-src")[1].split(";")[0]
    assert len(answer.content) < 500_000
    return str(answer.text)


@pytest.mark.parametrize("path", LISTS)
def test_an_empty_store_says_what_to_do(client: Client, path: str) -> None:
    assert "<h1>" in page(client, path)


@pytest.mark.parametrize("role", ["viewer", "user", "op", "admin"])
def test_everybody_who_signed_in_reads(client: Client, two_runs: tuple[str, str], role: str) -> None:
    for path in (*LISTS, f"runs/{two_runs[0]}"):
        page(client, path, role)


def test_a_browser_without_a_session_is_sent_to_sign_in_and_back(client: Client) -> None:
    for path in (*LISTS, "runs/abc", "blocks/abc"):
        answer = client("anonymous").get(f"{UNDER}/{path}?x=1")
        assert answer.status_code in (302, 307)
        assert (
            "login" in answer.headers["location"]
            and f"ui%2F{path.replace('/', '%2F')}%3Fx%3D1" in answer.headers["location"]
        )
    assert client("anonymous").post(f"{UNDER}/comparisons", data={"a": "x", "b": "y"}).status_code == 401


def test_a_session_of_another_secret_is_sent_to_sign_in(client: Client) -> None:
    visitor = client("anonymous")
    visitor.cookies.set("_token", "no token of this server")
    assert "login" in visitor.get(f"{UNDER}/runs").headers["location"]


def test_a_fault_is_a_page_with_the_same_headers(client: Client, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    monkeypatch.setattr(type(store.catalog), "runs", lambda *_, **__: 1 / 0)
    answer = client("viewer").get(f"{UNDER}/runs")
    assert answer.status_code == 500 and "division" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_no_route_is_open_but_the_static_files(app: FastAPI, client: Client) -> None:
    (pages,) = [route.app for route in app.routes if getattr(route, "path", "") == UNDER]
    walked = 0
    for route in pages.routes:
        path = re.sub(r"{[^}]*}", "x", route.path)
        if path == "/" or path.startswith("/static/"):
            continue
        for method in route.methods - {"HEAD"}:
            answer = client("anonymous").request(method, f"{UNDER}{path}")
            assert answer.status_code in ((302, 307) if method == "GET" else (401,)), path
            walked += 1
    assert walked > 18


def test_a_run_shows_numbers_guard_items_and_exports(client: Client, two_runs: tuple[str, str], store: Store) -> None:
    listed = page(client, "runs?suite=colours-all")
    assert all(run_id[:12] in listed for run_id in two_runs)
    assert two_runs[0][:12] not in page(client, "runs?status=planned")
    shown = page(client, f"runs/{two_runs[0]}")
    for words in ("Scores", "never checked", "colour-sums", "Items of colours", "Digests", two_runs[0]):
        assert words in shown


def test_items_are_filtered_paged_and_shown_beside_another_run(client: Client, two_runs: tuple[str, str]) -> None:
    a, b = two_runs
    first = page(client, f"runs/{a}/items?benchmark=colours")
    assert "70 items fit" in first and "c000" in first and "Next page" in first
    further = re.search(r'href="/checkpoint-eval(/ui/runs/[^"]*after=[^"]*)"', first)
    assert further is not None
    assert "c000" not in client("viewer").get(further[1].replace("&amp;", "&")).text
    discordant = page(client, f"runs/{a}/items?benchmark=colours&discordant_with={b}")
    assert "70 items fit" not in discordant and "Answer of the other" in discordant
    one = page(client, f"runs/{a}/items/colours/c001?discordant_with={b}")
    for words in (
        "Which of these is number 1?",
        "Log-probabilities, token by token",
        "Continuations",
        "Prompt:",
        f"Answer of run {b[:12]}",
    ):
        assert words in one


def test_what_a_model_wrote_is_text_and_no_markup(client: Client, answered: Callable[..., str]) -> None:
    run_id = answered(lambda name, n: {"output": HOSTILE} if name == "colour-sums" else {})
    for path in (f"runs/{run_id}/items?benchmark=colour-sums", f"runs/{run_id}/items/colour-sums/g000"):
        text = page(client, path)
        assert HOSTILE not in text and "&lt;script&gt;" in text


def test_two_runs_are_compared_from_the_page(client: Client, two_runs: tuple[str, str], store: Store) -> None:
    a, b = two_runs
    sent = {"a": a[:16], "b": b, "rule": ""}
    assert client("viewer").post(f"{UNDER}/comparisons", data=sent).status_code == 403
    made = client("user").post(f"{UNDER}/comparisons", data=sent)
    assert made.status_code == 303
    shown = page(client, made.headers["location"].removeprefix("/checkpoint-eval/ui/"))
    for words in ("Tests", "exploratory", "Flipped items of colours", "All discordant items"):
        assert words in shown
    assert store.catalog.comparisons()[0].comparison_id[:12] in page(client, "comparisons")
    refused = client("user").post(f"{UNDER}/comparisons", data={"a": "nope", "b": b})
    assert refused.status_code == 404 and "no run &#39;nope&#39;" in refused.text


def test_an_alert_is_acknowledged_once_with_a_reason(client: Client, alert: Alert, store: Store) -> None:
    assert "five outputs" in page(client, f"alerts/{alert.alert_id}")
    path = f"{UNDER}/alerts/{alert.alert_id}/acknowledge"
    assert client("viewer").post(path, data={"reason": "seen"}).status_code == 403
    assert client("user").post(path, data={"reason": ""}).status_code == 422
    assert client("user").post(path, data={"reason": "tokenizer re-exported"}).status_code == 303
    assert store.catalog.find_alert(alert.alert_id).acknowledged_by == "user"
    shown = page(client, f"alerts/{alert.alert_id}")
    assert "tokenizer re-exported" in shown and "Acknowledge it" not in shown
    assert client("op").post(path, data={"reason": "me too"}).status_code == 400


def test_a_block_is_explained_by_an_operator_and_the_second_is_told(client: Client, store: Store) -> None:
    block_id = store.catalog.open_block("f" * 64, "3 of 9 items differ", NOW, kind="sentinels", environment="h100")
    assert "h100 is blocked: 3 of 9 items differ" in page(client, "determinism")
    assert "baseline adopted" not in page(client, f"blocks/{block_id}")
    path, said = f"{UNDER}/blocks/{block_id}/explain", {"outcome": "baseline kept", "reason": "a cable"}
    for role in ("viewer", "user"):
        assert client(role).post(path, data=said).status_code == 403
    assert client("op").post(path, data={**said, "reason": ""}).status_code == 422
    assert client("op").post(path, data=said).status_code == 303
    assert "a cable" in page(client, f"blocks/{block_id}")
    second = client("admin").post(path, data={**said, "reason": "cosmic rays"})
    assert second.status_code == 400 and "was explained by" in second.text


def test_a_form_is_shown_to_those_who_may_send_it(client: Client, alert: Alert, store: Store) -> None:
    block_id = store.catalog.open_block("f" * 64, "3 of 9 items differ", NOW, kind="sentinels", environment="h100")
    for path, action, roles in (
        ("comparisons", "comparisons", ("user", "op", "admin")),
        (f"alerts/{alert.alert_id}", f"alerts/{alert.alert_id}/acknowledge", ("user", "op", "admin")),
        (f"blocks/{block_id}", f"blocks/{block_id}/explain", ("op", "admin")),
        ("release", "release", ("user", "op", "admin")),
    ):
        for role in ("viewer", "user", "op", "admin"):
            shown = page(client, path, role)
            is_there = f'method="post" action="/checkpoint-eval/ui/{action}"' in shown
            assert is_there == (role in roles), (path, role)
            assert ("your role may not" in shown) == (role not in roles)


def test_links_keep_what_the_server_has_before_its_paths(
    client: Client, alert: Alert, monkeypatch: pytest.MonkeyPatch
) -> None:
    from checkpoint_eval.pages.page import _prefix

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://testserver/airflow/")
    _prefix.cache_clear()
    try:
        shown = client("viewer").get(f"{UNDER}/alerts").text
    finally:
        _prefix.cache_clear()
    assert f'href="/airflow/checkpoint-eval/ui/alerts/{alert.alert_id}"' in shown
    assert "/airflow/checkpoint-eval/ui/static/pages.css" in shown


def test_times_are_marked_as_times(client: Client, alert: Alert) -> None:
    assert f'<time datetime="{alert.created_at}">' in page(client, f"alerts/{alert.alert_id}")


def test_a_write_from_another_site_is_refused(client: Client, alert: Alert) -> None:
    path = f"{UNDER}/alerts/{alert.alert_id}/acknowledge"
    answer = client("admin").post(path, data={"reason": "x"}, headers={"Origin": "http://elsewhere.example"})
    assert answer.status_code == 403


def test_benchmarks_show_versions_and_what_each_changed(client: Client, store: Store, tmp_path: Path) -> None:
    for version, prompt in (("1", "{{ question }}\nAnswer:"), ("2", "{{ question }} Answer:")):
        folder = tmp_path / version
        write_suite(folder, version=version, prompt={"item": prompt, "choices": "choices"})
        register_benchmark(store, folder / "colours.yaml", NOW)
    shown = page(client, "benchmarks/colours")
    assert "1 to 2" in shown and "template_digest: differs" in shown and "Never checked." in shown
    assert client("viewer").get(f"{UNDER}/benchmarks/colurs").status_code == 404


def test_what_is_not_there_is_a_page_with_the_way_out(client: Client) -> None:
    for path in ("runs/nope", "comparisons/nope", "alerts/nope", "blocks/nope", "training-runs/nope", "nowhere"):
        answer = client("viewer").get(f"{UNDER}/{path}")
        assert answer.status_code == 404 and "<h1>404" in answer.text, path


def test_the_root_leads_to_the_runs_and_static_files_are_served(client: Client) -> None:
    assert client("viewer").get(f"{UNDER}/").headers["location"] == "/checkpoint-eval/ui/runs"
    css = client("anonymous").get(f"{UNDER}/static/pages.css")
    assert css.headers["content-type"].startswith("text/css") and "prefers-color-scheme: dark" in css.text
    assert "toLocaleString" in client("anonymous").get(f"{UNDER}/static/pages.js").text


def test_a_dag_run_leads_to_the_evaluations_that_it_planned(
    client: Client, two_runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from checkpoint_eval.pages.routes import dag_runs

    assert "Nothing is planned yet" in page(client, "of/evaluate_release/manual__2026-01-01T00:00:00+00:00")
    monkeypatch.setattr(dag_runs, "planned_by", lambda *_: [two_runs[0], "gone"])
    assert two_runs[0][:12] in page(client, "of/evaluate_release/manual__1")
