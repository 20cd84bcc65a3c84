"""Items -> requests: rendered, tokenised, cut to the context. Prompts are part of the instrument, down to a blank."""

from eval_tasks.prompts.build import PromptBuilder, build_requests
from eval_tasks.prompts.compose import Composer, choice_texts, messages_of, render_text
from eval_tasks.prompts.identity import prompt_digest, template_digest

__all__ = [
    "Composer",
    "PromptBuilder",
    "build_requests",
    "choice_texts",
    "messages_of",
    "prompt_digest",
    "render_text",
    "template_digest",
]
