"""Items -> requests: rendered, tokenised, cut to the context. Prompts are part of the instrument, down to a blank."""

from eval_tasks.prompts.build import PromptBuilder, build_requests
from eval_tasks.prompts.compose import Composer, Prompt, messages_of, plain_prompts, render_text
from eval_tasks.prompts.identity import prompt_digest, template_digest

__all__ = [
    "Composer",
    "Prompt",
    "PromptBuilder",
    "build_requests",
    "messages_of",
    "plain_prompts",
    "prompt_digest",
    "render_text",
    "template_digest",
]
