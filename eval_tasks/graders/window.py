"""Which stored runs and benchmarks a regrading is about, what is done of it, and what is left. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.graders.grading import answers_of, find_grader, judging_runs, unfit, waits_for_questions
from eval_tasks.graders.questions import question_benchmark, questions
from eval_tasks.plan import about_tokens
from eval_tasks.records import BenchmarkVersion, Run
from eval_tasks.records.grader import BESIDE, RULE
from eval_tasks.scoring import scorer_names
from eval_tasks.store import Grader, Store
from eval_tasks.store.moments import epoch_seconds

OWN = "own"
"""In a grader's place: each benchmark's own scorer, as this release has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Closed evaluations that began from `since` to before `until`; an empty field leaves nothing out.

    `suite`: NAME or NAME@VERSION. `benchmark`: only runs that have it. `run_ids`: only these runs.
    """

    since: datetime | None = None
    until: datetime | None = None
    training_run: str = ""
    suite: str = ""
    tier: str = ""
    benchmark: str = ""
    run_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """One benchmark of one run, and the grader that is to score it. `done`: its scores are there."""

    run: Run
    benchmark: BenchmarkVersion
    grader: Grader
    done: bool

    @property
    def asked(self) -> str:
        """The grader's name as `plan_grading` and `finish_grading` take it."""
        return self.grader.grader if self.grader.judge else self.grader.name.removeprefix(RULE)

    @property
    def is_own(self) -> bool:
        """Whether the scores become the run's numbers: they are those of the benchmark's own scorer."""
        return not self.grader.grader.startswith(BESIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What is left to do: outputs to be scored; questions to a judge, with their tokens as guessed from characters.

    `seconds` of a pod: at the speed of this judge's earlier runs, None when there is none.
    """

    n_outputs: int = 0
    n_questions: int = 0
    about_tokens: int = 0
    seconds: float | None = None


def moment(text: str, *, end: bool = False) -> datetime:
    """A time of a window: a date, or date and time with a zone (UTC without one). `end`: a date stands for its end.

    Raises UserError for other text.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UserError(f"not a time: {text!r}; write 2026-01-31, or 2026-01-31T12:00:00+00:00") from error
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    return found + timedelta(days=1) if end and len(text) == len("2026-01-31") else found


def runs_in(store: Store, window: Window) -> list[Run]:
    """The runs of a window, oldest first. Raises UserError for a run that is not there, or an empty window of time."""
    if window.since and window.until and window.since >= window.until:
        raise UserError(f"the window ends at {window.until}, and begins at {window.since}: there is no time in it")
    if window.run_ids:
        named = {run.run_id: run for run in map(store.catalog.run, window.run_ids)}
        for run in named.values():
            run.require_evaluation()
        found = list(named.values())
    else:
        found = store.catalog.runs(
            training_run=window.training_run or None,
            suite=window.suite.partition("@")[0] or None,
            tier=window.tier or None,
        )
    return sorted((run for run in found if contains(store, window, run)), key=lambda run: (run.created_at, run.run_id))


def contains(store: Store, window: Window, run: Run) -> bool:
    """Whether a run is in the window."""
    name, _, version = window.suite.partition("@")
    began = epoch_seconds(run.created_at)
    return (
        run.status == "closed"
        and run.judging is None
        and (window.since is None or began >= window.since.timestamp())
        and (window.until is None or began < window.until.timestamp())
        and window.training_run in ("", run.training_run)
        and window.tier in ("", run.tier)
        and name in ("", run.request.suite)
        and version in ("", run.request.suite_version)
        and (not window.benchmark or window.benchmark in {b.name for b in _benchmarks(store, run)})
    )


def gradings(store: Store, run: Run, grader: str, benchmark: str = "") -> list[Grading]:
    """The benchmarks of a run that `grader` is to score.

    Without `benchmark` a scorer scores the benchmarks that have it as their own, and a judge all that it fits. With
    one, that alone: a scorer that is not its own is a second opinion. Raises UserError for a grader that is not known,
    or does not fit the benchmark named.
    """
    found = []
    known = _benchmarks(store, run)
    if grader != OWN and grader not in scorer_names():
        find_grader(store, grader, known[0])  # an unknown name is an error even where no benchmark fits
    if benchmark and benchmark not in {b.name for b in known}:
        names = [b.name for b in known]
        raise UserError(f"run {run.run_id[:12]} has no benchmark {benchmark!r}; {did_you_mean(benchmark, names)}")
    for version in known:
        scorer = version.scorer.name if grader == OWN else grader
        if benchmark not in ("", version.name):
            continue
        if not benchmark and scorer in scorer_names() and scorer != version.scorer.name:
            continue
        who = find_grader(store, scorer, version)
        if who.judge is not None and (why := unfit(who.judge, version)):
            if benchmark:
                raise UserError(why)
            continue
        done = who.grader in store.scores.graders(run.run_id, version.benchmark_id)
        found.append(Grading(run=run, benchmark=version, grader=who, done=done))
    return found


def forecast(store: Store, grading: Grading) -> Cost:
    """What is left of a grading. Reads the outputs of a judge's questions; loads no model and no tokenizer."""
    run, benchmark, judge = grading.run, grading.benchmark, grading.grader.judge
    if grading.done:
        return Cost()
    if judge is None:
        return Cost(n_outputs=store.responses.read(run.run_id, benchmark.benchmark_id, columns=["item_id"]).num_rows)
    answers = list(answers_of(store, run, benchmark))
    if not waits_for_questions(store, run, benchmark, grading.grader):
        return Cost(n_outputs=len(answers))
    shots = store.blobs.get_items(benchmark.few_shot_blob) if benchmark.few_shot_blob else []
    items = questions(benchmark, shots, judge, answers)
    asked = question_benchmark(judge)
    pace = _seconds_per_question(store, grading.grader)
    return Cost(
        n_outputs=len(answers),
        n_questions=len(items),
        about_tokens=sum(about_tokens(asked, item) for item in items),
        seconds=None if pace is None else pace * len(items),
    )


def _seconds_per_question(store: Store, grader: Grader) -> float | None:
    """Of the judge's runs that are closed."""
    seconds, n = 0.0, 0
    for run in judging_runs(store, grader):
        if run.status == "closed":
            rows = store.catalog.shards(run.run_id)
            seconds += sum(row.seconds for row in rows)
            n += sum(row.n_items for row in rows)
    return seconds / n if seconds and n else None


def _benchmarks(store: Store, run: Run) -> Sequence[BenchmarkVersion]:
    return store.catalog.benchmarks_by_id(run.request.benchmark_ids)
