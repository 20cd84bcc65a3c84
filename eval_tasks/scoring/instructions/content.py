"""`detectable_content:*`, `combination:*` and `startend:*`: what a response must hold, begin or end with."""

from __future__ import annotations

import re

from eval_tasks.scoring.instructions.registry import count, instruction, text

_PLACEHOLDER = re.compile(r"\[.*?\]")
_POSTSCRIPTS = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
_ANSWER_DIVIDER = "******"


@instruction("detectable_content:number_placeholders", num_placeholders=count)
def number_placeholders(response: str, *, num_placeholders: int) -> bool:
    """At least that many ``[placeholders]``."""
    return len(_PLACEHOLDER.findall(response)) >= num_placeholders


@instruction("detectable_content:postscript", postscript_marker=text)
def postscript(response: str, *, postscript_marker: str) -> bool:
    """The marker occurs, in any case; the two usual ones may have blanks between their letters."""
    lowered = response.lower()
    marker = _POSTSCRIPTS.get(postscript_marker.strip(), postscript_marker.strip().lower())
    try:
        return re.search(marker, lowered) is not None
    except re.error:
        return marker in lowered


@instruction("combination:two_responses")
def two_responses(response: str) -> bool:
    """Two different answers, parted by six asterisks; only the first and last stretch may be blank."""
    stretches = [stretch.strip() for stretch in response.split(_ANSWER_DIVIDER)]
    if not all(stretches[1:-1]):
        return False
    answers = [stretch for stretch in stretches if stretch]
    return len(answers) == 2 and answers[0] != answers[1]


@instruction("combination:repeat_prompt", prompt_to_repeat=text)
def repeat_prompt(response: str, *, prompt_to_repeat: str) -> bool:
    """Starts with the prompt, in any case."""
    return response.strip().lower().startswith(prompt_to_repeat.strip().lower())


@instruction("startend:end_checker", end_phrase=text)
def end_checker(response: str, *, end_phrase: str) -> bool:
    """Ends with the phrase, in any case; quotation marks around the response are dropped first."""
    return response.strip().strip('"').lower().endswith(end_phrase.strip().lower())


@instruction("startend:quotation")
def quotation(response: str) -> bool:
    """Wrapped in straight double quotation marks."""
    stripped = response.strip()
    return len(stripped) > 1 and stripped.startswith('"') and stripped.endswith('"')
