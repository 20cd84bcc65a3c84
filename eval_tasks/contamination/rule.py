"""What counts as contamination, as one record with a name of its own: the rule that every check is made under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eval_tasks.contamination.text import TEXT_RULE
from eval_tasks.digests import digest_value
from eval_tasks.errors import UserError
from eval_tasks.records import to_json
from eval_tasks.settings import ContaminationPolicy

SHORTEST_WHOLE = 3
"""Words from which a text too short for an n-gram is looked for whole; fewer words say nothing."""

_MOST_WORDS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When an item is contaminated: at one n of `thresholds`, the share of the n-grams of its question or of its answer
    that a corpus holds is at or above the threshold, or a document holds its whole question of at least the smallest n
    words.

    `thresholds`: n, in words -> share, 0 to 1. `document_limit`: n-grams in more documents of a corpus are boilerplate.
    `template_limit`: n-grams in more texts of one benchmark are its template's; neither count. `examples`: spans kept
    per text and corpus, the longest. `answer_window`: words around a found question in which its answer is near.
    """

    thresholds: Mapping[int, float] = field(default_factory=lambda: {8: 0.5, 13: 0.2})
    document_limit: int = 1000
    template_limit: int = 10
    examples: int = 3
    answer_window: int = 50
    text: str = TEXT_RULE

    @property
    def grams(self) -> tuple[int, ...]:
        """The n-gram lengths, ascending."""
        return tuple(sorted(self.thresholds))

    @property
    def name(self) -> str:
        """Text rule, lengths, and the beginning of the digest of everything: ``words-1 n=8,13 1f0a...``."""
        digest = digest_value(to_json(self))[:8]
        return f"{self.text.partition('/')[0]} n={','.join(map(str, self.grams))} {digest}"


def checked_rule(rule: Rule) -> Rule:
    """`rule` itself. Raises UserError for numbers that mean nothing."""
    if not rule.thresholds or not all(2 <= n <= _MOST_WORDS for n in rule.thresholds):
        raise UserError(f"n-gram lengths must be 2 to {_MOST_WORDS} words, not {sorted(rule.thresholds)}")
    if wrong := [share for share in rule.thresholds.values() if not 0 < share <= 1]:
        raise UserError(f"a contamination threshold is a share above 0 and at most 1, not {wrong[0]}")
    for name in ("document_limit", "template_limit", "answer_window", "examples"):
        if getattr(rule, name) < 1:
            raise UserError(f"{name} must be at least 1, not {getattr(rule, name)}")
    return rule


def rule_from(policy: ContaminationPolicy) -> Rule:
    """The rule that the configuration's section describes. Raises UserError for numbers that mean nothing."""
    return checked_rule(
        Rule(
            thresholds=policy.thresholds,
            document_limit=policy.document_limit,
            template_limit=policy.template_limit,
            examples=policy.examples,
            answer_window=policy.answer_window,
        )
    )
