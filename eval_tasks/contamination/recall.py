"""How much of what is planted in a corpus sample is found: known overlaps in, shares found at each n out.

Every item is planted in one way, in a document of its own; the last kind is not planted at all and must not be found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from eval_tasks.contamination.hashing import joined
from eval_tasks.contamination.items import ItemText
from eval_tasks.contamination.rule import Rule
from eval_tasks.contamination.table import build_table
from eval_tasks.digests import digest_parts
from eval_tasks.errors import UserError
from eval_tasks.records import CorpusFile, CorpusManifest

NOT_PLANTED = "not planted"
_STAND_IN = "zzreplacedword"


def _half(text: str) -> str:
    words = text.split()
    return " ".join(words[: (len(words) + 1) // 2])


def _edited(text: str, every: int) -> str:
    """Each `every`-th word replaced, beginning in the middle of the first stretch."""
    words = text.split()
    return " ".join(_STAND_IN if n % every == every // 2 else word for n, word in enumerate(words))


def _wrapped(text: str) -> str:
    words = text.split()
    return "\n".join(" ".join(words[n : n + 8]) for n in range(0, len(words), 8))


PLANTS: Mapping[str, Callable[[str], str]] = {
    "whole": lambda text: text,
    "first half": _half,
    "every 20th word replaced": lambda text: _edited(text, 20),
    "every 10th word replaced": lambda text: _edited(text, 10),
    "other punctuation": lambda text: " -- ".join(text.replace(".", "!").replace(",", ";").split()),
    "wrapped at 8 words": _wrapped,
    "upper case": str.upper,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """One kind of plant: how many of `n_items` were found by any n-gram of each n, how many were called contaminated.

    `mean_share`: of the question's n-grams found, over the items that have any, per n; None where none has.
    """

    kind: str
    n_items: int
    found: Mapping[int, int]
    mean_share: Mapping[int, float | None]
    n_contaminated: int


def measure_recall(rule: Rule, items: Sequence[ItemText], sample: Sequence[str]) -> tuple[Recall, ...]:
    """Plant the questions of `items` in copies of `sample` documents and look for them. Needs no store.

    Items are dealt to the kinds of plant in the order of a digest of their ids, so that the same input gives the same
    answer. Raises UserError when there are fewer items with an n-gram than kinds, or no document.
    """
    from eval_tasks.contamination.finding import Findings
    from eval_tasks.contamination.readers import Documents
    from eval_tasks.contamination.reduce import FoundTables, reduce_found

    kinds = [*PLANTS, NOT_PLANTED]
    usable = [replace(item, question=("\n".join(item.question),), choices=(), answer=()) for item in items]
    usable = [item for item in usable if len(item.question[0].split()) >= rule.grams[-1]]
    if len(usable) < len(kinds) or not sample:
        raise UserError(
            f"recall needs at least {len(kinds)} items of {rule.grams[-1]} words or more and one document to plant "
            f"them in; there are {len(usable)} such items and {len(sample)} documents"
        )
    usable.sort(key=lambda item: digest_parts(["recall", item.item_id]))
    kind_of = {item.item_id: kinds[n % len(kinds)] for n, item in enumerate(usable)}
    texts = [
        _planted(sample[n % len(sample)], item.question[0], kind_of[item.item_id]) for n, item in enumerate(usable)
    ]
    table = build_table(rule, [("recall", usable)])
    findings = Findings(table)
    data, starts, stops = joined([text.encode("utf-8", "replace") for text in texts])
    findings.add(Documents(file=0, texts=data, starts=starts, stops=stops, rows=np.arange(len(texts))))
    manifest = CorpusManifest(uri="", files=(CorpusFile(path="sample", size=0, version="", format="lines"),))
    found = FoundTables(shard=0, runs=findings.runs(), segments=findings.segments(), examples=findings.examples())
    rows = reduce_found(table, manifest, [found])["recall"]
    shares = np.array(rows["question_share"], np.float64).reshape(len(usable), len(rule.grams))
    contaminated = np.array([status == "contaminated" for status in rows["status"]])
    of_kind = np.array([kinds.index(kind_of[item_id]) for item_id in rows["item_id"]])
    return tuple(_recall(kind, rule, shares[of_kind == k], contaminated[of_kind == k]) for k, kind in enumerate(kinds))


def _recall(kind: str, rule: Rule, shares: npt.NDArray[np.float64], contaminated: npt.NDArray[np.bool_]) -> Recall:
    """The record of one kind, from shares by [item, n]."""
    known = ~np.isnan(shares)
    return Recall(
        kind=kind,
        n_items=len(shares),
        found={n: int(np.count_nonzero(shares[:, k] > 0)) for k, n in enumerate(rule.grams)},
        mean_share={
            n: float(shares[known[:, k], k].mean()) if known[:, k].any() else None for k, n in enumerate(rule.grams)
        },
        n_contaminated=int(np.count_nonzero(contaminated)),
    )


def _planted(document: str, text: str, kind: str) -> str:
    """`document` with the plant between two of its words near the middle."""
    if kind == NOT_PLANTED:
        return document
    middle = document.find(" ", len(document) // 2)
    cut = len(document) if middle < 0 else middle
    return f"{document[:cut]}\n{PLANTS[kind](text)}\n{document[cut:]}"
