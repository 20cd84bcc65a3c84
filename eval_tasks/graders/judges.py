"""A judge's YAML file -> a registered model grader. Everything is checked first; a refused file leaves nothing.

The same content again changes nothing but what no verdict depends on (description, place of the checkpoint, how an
endpoint is reached). Other content under the same name and version is refused, with the part that differs.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from eval_tasks.checkpoint import build_manifest, fetch, max_context, read_config
from eval_tasks.errors import UserError
from eval_tasks.graders.questions import question_benchmark
from eval_tasks.prompts import PromptBuilder
from eval_tasks.records import Checkpoint, EngineConfig, Item, Judge, ScorerRef
from eval_tasks.records.grader import JUDGE
from eval_tasks.registry import JudgeSpec, load_judge_file
from eval_tasks.registry.judge_spec import FIELDS, JudgeEngineSpec, VerdictSpec
from eval_tasks.scoring import scorer_digest, scorer_names, scorer_version, validate_scorer
from eval_tasks.scoring.verdict import PATTERN, stated_form
from eval_tasks.store import Grader, Store
from eval_tasks.tokenization import load_tokenizer

_log = logging.getLogger(__name__)


def register_judge(store: Store, path: Path, *, now: str, cache_dir: Path) -> Grader:
    """Check and register the judge in a YAML file. `cache_dir` holds copies of remote checkpoints.

    Raises UserError for anything wrong in the file, or when the version stands for another judge; CheckpointError for a
    checkpoint that must not be run.
    """
    spec = load_judge_file(path)
    if spec.name in scorer_names():
        raise UserError(f"{path}: {spec.name!r} is the name of a scorer; choose another")
    ref = _checked_verdict(spec)
    checkpoint = None
    if spec.checkpoint is not None:
        checkpoint = build_manifest(spec.checkpoint, training_run=f"{JUDGE}{spec.name}", step=0)
    judge = _judge(spec, ref, checkpoint)
    kept = _beside_what_is_known(store, judge, now)
    if checkpoint is not None:
        _check_questions(judge, fetch(checkpoint, cache_dir))
        store.catalog.save_checkpoint(checkpoint)
    store.catalog.save_grader(kept)
    return kept


def _checked_verdict(spec: JudgeSpec) -> ScorerRef:
    """The scorer that reads the judge's verdicts. Raises UserError for answers or a pattern that cannot be read."""
    verdict = spec.verdict or VerdictSpec()
    ref = ScorerRef(
        name="verdict",
        version=scorer_version("verdict"),
        parameters={"answers": dict(spec.answers), "pattern": verdict.pattern or PATTERN},
        reasoning=verdict.reasoning.record() if verdict.reasoning else None,
    )
    validate_scorer(ref, "choice" if spec.kind == "logprob" else "generation")
    if spec.kind != "logprob":
        forms: dict[str, str] = {}
        for answer in spec.answers:
            form = stated_form(answer)
            if not form or form in forms:
                same = f" is read as {forms[form]!r} is" if form else " is nothing but marks"
                raise UserError(f"judge {spec.name!r}: answer {answer!r}{same}; choose another")
            forms[form] = answer
    return ref


def _judge(spec: JudgeSpec, ref: ScorerRef, checkpoint: Checkpoint | None) -> Judge:
    writes = spec.kind != "logprob"
    verdict = spec.verdict or VerdictSpec()
    judge = Judge(
        name=spec.name,
        version=spec.version,
        kind=spec.kind,
        template=spec.template(),
        answers=dict(spec.answers),
        engine=spec.endpoint.record() if spec.endpoint else (spec.engine or JudgeEngineSpec()).record(),
        verdict_digest=scorer_digest(ref),
        pattern=verdict.pattern or PATTERN,
        max_tokens=verdict.max_tokens if writes else 0,
        reasoning=ref.reasoning,
        checkpoint_id=checkpoint.checkpoint_id if checkpoint else "",
        checkpoint_uri=checkpoint.uri if checkpoint else "",
        description=spec.description,
    )
    return replace(judge, access=spec.endpoint.access()) if spec.endpoint else judge


def _beside_what_is_known(store: Store, judge: Judge, now: str) -> Grader:
    """The judge as a grader; of one that is registered, its time and qualification stay. Refuses a changed one."""
    grader = Grader(
        name=f"{JUDGE}{judge.name}",
        version=judge.version,
        kind="model",
        digest=judge.judge_digest,
        created_at=now,
        description=judge.description,
        judge=judge,
    )
    key = (grader.name, grader.version)
    known = next((g for g in store.catalog.graders() if (g.name, g.version) == key), None)
    if known is None:
        return grader
    if known.digest != grader.digest:
        before = known.judge.parts if known.judge else {}
        changed = ", ".join(part for part, digest in judge.parts.items() if before.get(part) != digest)
        raise UserError(
            f"judge {judge.name!r} version {judge.version!r} is registered with other content ({changed} differ); "
            "choose a new version"
        )
    return replace(known, description=grader.description, judge=judge)


def _check_questions(judge: Judge, folder: Path) -> None:
    """Put one question with the checkpoint's tokenizer.

    Raises UserError when its template, chat template or context will not do, or for an answer without a token; warns of
    answers of several lengths in tokens.
    """
    engine = judge.engine_config or EngineConfig()
    builder = PromptBuilder(
        question_benchmark(judge), [], load_tokenizer(folder), engine, max_context(read_config(folder))
    )
    sample = Item(item_id="a sample", fields={**dict.fromkeys(FIELDS, "x"), "references": ["x"], "item": _AnyFields()})
    [request] = builder.requests([sample])
    if request.problem:
        raise UserError(f"judge {judge.name!r}: an answer has no token of its own ({request.problem}); change it")
    lengths = {answer: len(ids) for answer, ids in zip(request.choices, request.continuations, strict=True)}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{answer!r} has {n}" for answer, n in lengths.items())
        _log.warning("judge %s: answers differ in tokens (%s): longer ones are less likely as such", judge.name, told)


class _AnyFields(dict[str, str]):
    """An item with whatever column a template asks for."""

    def __missing__(self, key: str) -> str:
        return "x"
