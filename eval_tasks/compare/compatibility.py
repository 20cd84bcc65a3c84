"""Two runs and their versions of a benchmark -> how far they can be compared, and what differs, in words."""

from __future__ import annotations

from eval_tasks.errors import NotComparableError
from eval_tasks.records import BenchmarkVersion, Run
from eval_tasks.records.verdict import Compatibility


def refuse_mock_against_real(a: Run, b: Run) -> None:
    """Raises NotComparableError when one of two runs, and not the other, is a mock engine's."""
    mocks = [run for run in (a, b) if run.origin == "mock"]
    if len(mocks) == 1:
        raise NotComparableError(
            f"run {mocks[0].run_id} is of a mock engine and the other is not: made-up answers are compared with such "
            "answers alone"
        )


def compatibility(a: BenchmarkVersion, b: BenchmarkVersion) -> tuple[Compatibility, str]:
    """How two versions of a benchmark can be compared by their digests, and which digest differs, in words.

    SCORE: all three match. PAIRED: the items match. PARTIAL: the items differ and pairing decides how many are shared.
    Declared sampling, the kind and the most tokens of an answer count like digests: they too are other scores.
    """
    names = ("items", "template", "scorer")
    differ = [n for n in names if getattr(a, f"{n}_digest") != getattr(b, f"{n}_digest")]
    words = [
        f"{n}_digest differs ({getattr(a, f'{n}_digest')[:12]} in A, {getattr(b, f'{n}_digest')[:12]} in B)"
        for n in differ
    ]
    drawn_a, drawn_b = (s.sampling_digest if s else "greedy" for s in (a.sampling, b.sampling))
    if drawn_a != drawn_b:
        words.append(f"sampling differs ({drawn_a[:12]} in A, {drawn_b[:12]} in B)")
    words += [
        f"{name} differs ({getattr(a, name)} in A, {getattr(b, name)} in B)"
        for name in ("kind", "max_tokens")
        if getattr(a, name) != getattr(b, name)
    ]
    if not words:
        return "SCORE", ""
    return ("PARTIAL" if "items" in differ else "PAIRED"), ", ".join(words)


def known_compatibility(
    runs: tuple[Run, Run], versions: tuple[BenchmarkVersion, BenchmarkVersion]
) -> tuple[Compatibility, str]:
    """As the versions say, but never SCORE where rows were imported: nobody knows that they had the same prompts."""
    level, difference = compatibility(*versions)
    arms = [arm for arm, run in zip("AB", runs, strict=True) if run.origin == "imported"]
    if not arms:
        return level, difference
    words = (
        f"rows of {' and '.join(arms)} were imported: their prompts and settings are not known to be the benchmark's"
    )
    return ("PAIRED" if level == "SCORE" else level), f"{difference}, {words}" if difference else words
