"""An agreement set and two graders -> may the new one take the place of the one in use? Stored with digest and time.

It may when it is not inferior in any category, however good its total: `stats.non_inferiority` has the test.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime

import numpy as np

from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.graders.agreement_sets import items_of
from eval_tasks.graders.raters import people_say, verdicts_of, with_people
from eval_tasks.records.agreement import AgreementSet, CategoryResult, GraderInUse, Qualification
from eval_tasks.stats.non_inferiority import non_inferior_by_category
from eval_tasks.store import Store


def qualify(
    store: Store,
    agreement_set: AgreementSet,
    grader: str,
    *,
    against: str,
    margin: float,
    alpha: float = 0.05,
    now: str,
) -> Qualification:
    """Hold `grader` against `against`, the one in use, and keep the answer.

    Adopted, it takes the place of `against` on each benchmark that has that in use (on the set's own benchmark alone,
    where the set has one). The same question on the same set has one answer, with the time of the first. Raises
    UserError for a margin or alpha out of range, or a grader without verdicts on the set.
    """
    _check(store, agreement_set, grader, against, margin, alpha)
    items = items_of(store, agreement_set)
    people = people_say(items)
    decided = ~np.isnan(people)
    said = {name: verdicts_of(store, agreement_set, items, name) for name in (grader, against)}
    agrees = {name: (values == people).astype(np.float64) for name, values in said.items()}
    category = np.array([item.category for item in items])
    by_category = {}
    for name in agreement_set.categories:
        rows = (category == name) & decided
        by_category[name] = (agrees[grader][rows], agrees[against][rows])
    results = non_inferior_by_category(by_category, margin=margin, alpha=alpha)
    reasons = [refusal(result, margin, alpha) for result in results if result.outcome != "NON_INFERIOR"]
    made = Qualification(
        grader=grader,
        against=against,
        agreement_set=agreement_set.reference,
        set_digest=agreement_set.set_digest,
        margin=margin,
        alpha=alpha,
        adopted=not reasons,
        reason="; ".join(reasons) or f"not inferior in any category by {_points(margin)} points or more",
        categories=tuple(results),
        overall_new=with_people(people, said[grader]),
        overall_current=with_people(people, said[against]),
        n_tied=int(np.count_nonzero(~decided)),
        n_unjudged_new=int(np.count_nonzero(np.isnan(said[grader]) & decided)),
        n_unjudged_current=int(np.count_nonzero(np.isnan(said[against]) & decided)),
        qualified_at=now,
    )
    kept = store.catalog.save_qualification(made)
    _record(store, kept, agreement_set.benchmark)
    return kept


def refusal(result: CategoryResult, margin: float, alpha: float) -> str:
    """Why a category stands in the way, with its figures."""
    name = f"category {result.category!r}" if result.category else "items without a category"
    if result.delta is None or result.ci is None:
        needed = f"; {result.n_needed:,} are needed" if result.n_needed else ""
        return f"{name}: UNDERPOWERED, no output has a label that people agree on{needed}"
    figures = (
        f"agreement {_percent(result.agreement_new)} against {_percent(result.agreement_current)} on {result.n} "
        f"labels, difference {_points(result.delta, '+')} points, {100 * (1 - 2 * alpha):g} % interval "
        f"{_points(result.ci[0], '+')} to {_points(result.ci[1], '+')}, p = {result.p_holm:.3g} (Holm) of a loss of "
        f"{_points(margin)} points or more"
    )
    if result.outcome == "UNDERPOWERED":
        return f"{name}: UNDERPOWERED, {figures}; about {result.n_needed:,} labels are needed"
    return f"{name}: FAILED, {figures}"


def use(store: Store, grader: str, benchmark: str, *, reason: str, now: str) -> GraderInUse:
    """Put `grader` in use for a benchmark by a person's word, without a qualification.

    Raises UserError for an unknown benchmark, or without a reason.
    """
    if not reason.strip():
        raise UserError("a grader is put in use with a reason; say why in --reason")
    known = {version.name for version in store.catalog.benchmarks()}
    if benchmark not in known:
        raise UserError(f"no benchmark {benchmark!r}; {did_you_mean(benchmark, known)}")
    made = GraderInUse(benchmark=benchmark, grader=grader, since=now, reason=reason)
    store.catalog.put_grader_in_use(made)
    return made


def _record(store: Store, made: Qualification, benchmark: str) -> None:
    """What an answer changes: the grader's own record, and where the one it was held against is in use."""
    for known in store.catalog.graders():
        if known.grader == made.grader:
            summary = {
                "qualification_id": made.qualification_id,
                "set": made.agreement_set,
                **asdict(made.overall_new),
            }
            store.catalog.save_grader(replace(known, adopted=made.adopted or known.adopted, agreement=summary))
    if not made.adopted:
        return
    for stands in store.catalog.graders_in_use():
        if stands.grader != made.against or benchmark not in ("", stands.benchmark):
            continue
        if not _is_overruled(store, made, stands):
            store.catalog.put_grader_in_use(
                GraderInUse(
                    benchmark=stands.benchmark,
                    grader=made.grader,
                    since=made.qualified_at,
                    reason=f"qualified against {made.against} on {made.agreement_set}",
                    qualification_id=made.qualification_id,
                )
            )


def _is_overruled(store: Store, made: Qualification, stands: GraderInUse) -> bool:
    """Whether a person put `stands` in use after this answer was given: asked again, the answer undoes no word."""
    if datetime.fromisoformat(stands.since) > datetime.fromisoformat(made.qualified_at):
        return True
    uses = store.catalog.grader_uses(stands.benchmark)
    return any(use.qualification_id == made.qualification_id for use in uses)


def _check(store: Store, agreement_set: AgreementSet, grader: str, against: str, margin: float, alpha: float) -> None:
    if grader == against:
        raise UserError(f"grader {grader!r} is held against itself; name the one in use with --against")
    if not 0 < margin < 1:
        raise UserError(f"margin {margin:g}; it is a share of labels above 0 and below 1, such as 0.02")
    if not 0 < alpha < 0.5:
        raise UserError(f"alpha {alpha:g}; it lies between 0 and .5")
    for stands in store.catalog.graders_in_use(agreement_set.benchmark) if agreement_set.benchmark else ():
        if stands.grader not in (grader, against):
            raise UserError(
                f"{stands.grader!r} is in use for {stands.benchmark!r}, not {against!r}; hold {grader!r} against that"
            )


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f} %"


def _points(share: float, sign: str = "") -> str:
    return f"{100 * share:{sign}.3g}"
