"""IFEval's instructions: (response text, arguments) -> followed or not, one small function per instruction id.

The conventions are those of lm-eval 0.4.9's ``ifeval`` task. We differ in two places, each named where it stands:
`keywords:letter_frequency` counts any character (there "#" and "!" become a random letter), and `change_case:english_*`
judge the case alone (there a language detector without a seed has a say).
"""

from eval_tasks.scoring.instructions import case, content, formats, keywords, lengths
from eval_tasks.scoring.instructions.registry import Instruction, bind, instruction_ids, is_skipped

__all__ = [
    "Instruction",
    "bind",
    "case",
    "content",
    "formats",
    "instruction_ids",
    "is_skipped",
    "keywords",
    "lengths",
]
