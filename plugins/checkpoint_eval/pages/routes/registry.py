"""What is registered: benchmarks with their versions and differences, graders with their agreement, decision rules."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from fastapi import APIRouter

from checkpoint_eval.api.access import READ
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.pages.page import Page, Section, Text, html, link, listing, moment
from checkpoint_eval.pages.viewer import Visitor
from eval_tasks.compare.instruments import difference, difference_lines
from eval_tasks.errors import UnknownError, did_you_mean
from eval_tasks.records import BenchmarkVersion
from eval_tasks.report.numbers import amount, share
from eval_tasks.store import Store

router = APIRouter(dependencies=READ)


@router.get("/benchmarks")
def benchmarks(store: Archive, viewer: Visitor) -> str:
    """All benchmarks, the latest version of each, and the suites that ask them."""
    versions: dict[str, list[BenchmarkVersion]] = {}
    for found in store.catalog.benchmarks():
        versions.setdefault(found.name, []).append(found)
    rows = [
        (
            link(name, f"benchmarks/{name}"),
            all_of[-1].version,
            str(len(all_of)),
            all_of[-1].kind,
            f"{all_of[-1].n_items:,}",
            all_of[-1].primary_metric,
        )
        for name, all_of in sorted(versions.items())
    ]
    columns = {"Benchmark": "", "Latest": "", "Versions": "number", "Kind": "", "Items": "number", "Metric": ""}
    suites = [
        (f"{suite.name}@{suite.version}", suite.tier, ", ".join(entry.benchmark for entry in suite.entries))
        for suite in store.catalog.suites()
    ]
    sections = (
        listing(
            "list",
            "Benchmarks",
            columns,
            rows,
            empty="No benchmark is registered: python -m eval_tasks benchmarks register --shipped",
        ),
        listing(
            "suites",
            "Suites",
            {"Suite": "", "Tier": "", "Benchmarks": ""},
            suites,
            title="Suites",
            empty="No suite is registered.",
        ),
    )
    return html(Page(title="Benchmarks", here="benchmarks", sections=sections), viewer)


@router.get("/benchmarks/{name}")
def benchmark(store: Archive, viewer: Visitor, name: str) -> str:
    """One benchmark: its versions, what each changed, and what was found of it in training corpora."""
    versions = [found for found in store.catalog.benchmarks() if found.name == name]
    if not versions:
        raise UnknownError(f"no benchmark {name!r}; {did_you_mean(name, {b.name for b in store.catalog.benchmarks()})}")
    rows = [
        (
            b.version,
            b.kind,
            f"{b.n_items:,}",
            b.primary_metric,
            f"{b.scorer.name}@{b.scorer.version}",
            b.licence,
            moment(b.created_at),
        )
        for b in reversed(versions)
    ]
    columns = {
        "Version": "",
        "Kind": "",
        "Items": "number",
        "Metric": "",
        "Scorer": "",
        "Licence": "",
        "Registered": "",
    }
    changes = tuple(
        Text(
            label=f"{before.version} to {after.version}",
            body="\n".join(difference_lines(difference(store, before, after))),
        )
        for before, after in pairwise(versions)
    )
    sections = [
        listing("versions", "Versions, newest first", columns, rows),
        _checks(store, versions[-1]),
    ]
    if changes:
        sections.insert(1, Section(title="What versions changed", name="changes", texts=changes))
    page = Page(
        title=f"Benchmark {name}",
        here="benchmarks",
        crumbs=(("benchmarks", "Benchmarks"),),
        lead=tuple(filter(None, [versions[-1].description])),
        sections=tuple(sections),
    )
    return html(page, viewer)


def _checks(store: Store, found: BenchmarkVersion) -> Section:
    rows = []
    for check in store.catalog.contamination(found.benchmark_id, None):
        counts = Counter(check.rows.values())
        rows.append(
            (check.corpus, check.rule, moment(check.checked_at), share(counts["contaminated"], sum(counts.values())))
        )
    return listing(
        "contamination",
        f"Version {found.version} in training corpora",
        {"Corpus": "", "Rule": "", "Checked": "", "Contaminated": "number"},
        rows,
        title="Contamination",
        empty="Never checked.",
    )


@router.get("/graders")
def graders(store: Archive, viewer: Visitor) -> str:
    """Graders, those in use, and what qualification found by category."""
    known = [
        (g.grader, g.kind, "yes" if g.reproducible else "no", moment(g.created_at)) for g in store.catalog.graders()
    ]
    in_use = [(u.benchmark, u.grader, u.reason, moment(u.since)) for u in store.catalog.graders_in_use()]
    qualified = [
        (
            q.grader,
            q.against,
            q.agreement_set,
            c.category,
            c.outcome,
            str(c.n),
            amount(c.agreement_new),
            amount(c.agreement_current),
        )
        for q in store.catalog.qualifications()
        for c in q.categories
    ]
    sections = (
        listing(
            "in-use",
            "Graders in use, by benchmark",
            {"Benchmark": "", "Grader": "code", "Reason": "", "Since": ""},
            in_use,
            title="In use",
            empty="Every benchmark is scored by its own scorer.",
        ),
        listing(
            "qualifications",
            "Agreement with people, by category",
            {
                "Grader": "code",
                "Against": "code",
                "Set": "",
                "Category": "",
                "Outcome": "",
                "Labels": "number",
                "Agrees": "number",
                "The other agrees": "number",
            },
            qualified,
            title="Qualifications",
            empty="No grader was held against people's labels.",
        ),
        listing(
            "all",
            "Registered graders",
            {"Grader": "code", "Kind": "", "Reproducible": "", "Since": ""},
            known,
            title="All graders",
            empty="No grader besides the benchmarks' own scorers.",
        ),
    )
    return html(Page(title="Graders", here="graders", sections=sections), viewer)


@router.get("/rules")
def rules(store: Archive, viewer: Visitor) -> str:
    """Decision rules, with the time of their registration: a rule younger than a run labels it exploratory."""
    rows = [
        (
            r.name,
            r.kind,
            r.metric,
            ", ".join(f"{name} x {weight:g}" for name, weight in sorted(r.components.items())),
            moment(r.registered_at),
            r.rule_id[:12],
        )
        for r in store.catalog.rules()
    ]
    section = listing(
        "list",
        "Decision rules",
        {"Rule": "", "Kind": "", "Metric": "", "Components": "", "Registered": "", "Digest": "code"},
        rows,
        empty="No rule is registered: comparisons are exploratory. python -m eval_tasks rules register FILE",
    )
    return html(Page(title="Decision rules", here="rules", sections=(section,)), viewer)
