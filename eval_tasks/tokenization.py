"""A checkpoint's folder in, its tokenizer out: token ids, special ids, chat template, and a digest of them all.

Stands on the `tokenizers` library and Jinja2, so that plans and prompts need no torch. Knows no benchmark and no
engine. Special tokens are never added here: which BOS a prompt gets is the prompt's policy.

Chat templates come with checkpoints and are foreign code: they run in Jinja's immutable sandbox. Their
`strftime_now` gives one fixed date (`TEMPLATE_DATE`), since a prompt that changes overnight cannot be repeated.
`clean_up_tokenization_spaces` is ignored, as transformers does for BPE: it loses blanks that the model wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import tokenizers
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from eval_tasks.digests import digest_bytes, digest_value
from eval_tasks.errors import CheckpointError, UserError

TEMPLATE_DATE = datetime(2024, 7, 26, tzinfo=UTC)
"""What a chat template is told the date is: the date that Llama 3's own template falls back to."""

# What the evaluation of a template's expressions can raise.
_TEMPLATE_FAILURES = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)

_TOKEN_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class Tokenizer:
    """A tokenizer as a checkpoint defines it.

    `bos_id` and `pad_id` are None when the checkpoint names none. `eos_ids` are all ids that end a generation, sorted.
    `adds_bos` says whether the tokenizer by itself would put BOS in front. `vocab_size` is the largest id plus one.
    `digest` covers all that can change a token id or a rendered chat.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        *,
        file_digest: str,
        special_tokens: Mapping[str, str],
        bos_id: int | None,
        eos_ids: tuple[int, ...],
        pad_id: int | None,
        adds_bos: bool,
        chat_template: str | None,
    ) -> None:
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self._special_tokens = dict(special_tokens)
        self.bos_id = bos_id
        self.eos_ids = eos_ids
        self.pad_id = pad_id
        self.adds_bos = adds_bos
        self.chat_template = chat_template
        self.vocab_size: int = max(backend.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        identity = [file_digest, self._special_tokens, bos_id, list(eos_ids), pad_id, adds_bos, chat_template]
        self.digest: str = digest_value([*identity, TEMPLATE_DATE.isoformat()])

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`. Special tokens written in the text are recognised, none is added."""
        ids: list[int] = self._backend.encode(_valid_unicode(text), add_special_tokens=False).ids
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text, in order; much faster than one by one."""
        clean = [_valid_unicode(text) for text in texts]
        return [encoding.ids for encoding in self._backend.encode_batch_fast(clean, add_special_tokens=False)]

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Text of token ids. Bytes that are no UTF-8 character (yet) come out as U+FFFD."""
        text: str = self._backend.decode(list(ids), skip_special_tokens=skip_special_tokens)
        return text

    def apply_chat(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> str:
        """`messages` (role, content) through the checkpoint's chat template. Raises UserError when it has none or the
        template refuses.
        """
        if self._chat is None:
            raise UserError("the checkpoint has no chat template; set 'chat: never' in the benchmark or engine config")
        try:
            return self._chat.render(
                messages=[dict(message) for message in messages],
                tools=None,
                documents=None,
                add_generation_prompt=add_generation_prompt,
                **self._special_tokens,
            )
        except _TEMPLATE_FAILURES as error:
            raise UserError(f"the checkpoint's chat template failed: {error}") from error

    @cached_property
    def _chat(self) -> jinja2.Template | None:
        if self.chat_template is None:
            return None
        try:
            return _chat_environment().from_string(self.chat_template)
        except jinja2.TemplateSyntaxError as error:
            raise UserError(f"the checkpoint's chat template, line {error.lineno}: {error.message}") from error


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer in a checkpoint's folder.

    Raises CheckpointError: ``no_fast_tokenizer`` without tokenizer.json, ``bad_tokenizer`` when it or a file beside it
    cannot be read or names a special token that the vocabulary lacks.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(
            "no_fast_tokenizer",
            f"{folder} has no tokenizer.json; save it with AutoTokenizer.from_pretrained(...).save_pretrained(...)",
        )
    data = path.read_bytes()
    try:
        backend = tokenizers.Tokenizer.from_str(data.decode("utf-8"))
    except Exception as error:  # the Rust library raises bare Exception for any parse error
        raise CheckpointError("bad_tokenizer", f"{path} is not a tokenizer: {error}") from error
    tokenizer_config = _read_json(folder / "tokenizer_config.json")
    special_tokens = _special_tokens(_read_json(folder / "special_tokens_map.json"), tokenizer_config)
    ids = {name: _token_id(backend, name, token, folder) for name, token in special_tokens.items()}
    config = _read_json(folder / "config.json")
    models = [_read_json(folder / "generation_config.json"), config]
    if isinstance(config.get("text_config"), dict):
        models.append(config["text_config"])
    bos_id = ids.get("bos_token", _first_id(models, "bos_token_id"))
    eos_ids = {i for model in models for i in _id_list(model.get("eos_token_id"))} | {
        i for name, i in ids.items() if name == "eos_token"
    }
    return Tokenizer(
        backend,
        file_digest=digest_bytes(data),
        special_tokens=special_tokens,
        bos_id=bos_id,
        eos_ids=tuple(sorted(eos_ids)),
        pad_id=ids.get("pad_token", _first_id(models, "pad_token_id")),
        adds_bos=_adds_bos(backend, bos_id, tokenizer_config.get("add_bos_token")),
        chat_template=_chat_template(folder, tokenizer_config),
    )


def _adds_bos(backend: tokenizers.Tokenizer, bos_id: int | None, declared: object) -> bool:
    """Whether the post-processor puts BOS in front; where it adds nothing at all, what `add_bos_token` declares.

    Transformers 5 reads tokenizer.json alone; older exports have `add_bos_token: true` beside a post-processor
    that their loader had yet to rewrite.
    """
    if bos_id is None:
        return False
    if backend.num_special_tokens_to_add(is_pair=False) > 0:
        return bool(backend.encode("a").ids[:1] == [bos_id])
    return declared is True


def _special_tokens(map_file: Mapping[str, Any], tokenizer_config: Mapping[str, Any]) -> dict[str, str]:
    """Special tokens by name, as text; tokenizer_config.json wins over special_tokens_map.json."""
    found = {}
    for name in _TOKEN_NAMES:
        value = tokenizer_config[name] if name in tokenizer_config else map_file.get(name)
        if isinstance(value, dict):
            value = value.get("content")
        if isinstance(value, str):
            found[name] = value
    return found


def _token_id(backend: tokenizers.Tokenizer, name: str, token: str, folder: Path) -> int:
    token_id: int | None = backend.token_to_id(token)
    if token_id is None:
        raise CheckpointError("bad_tokenizer", f"{folder}: {name} is {token!r}, which tokenizer.json does not have")
    return token_id


def _id_list(value: object) -> list[int]:
    """An id or a list of ids from a config file; anything else (absent, null) is none."""
    values = value if isinstance(value, list) else [value]
    return [v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0]


def _first_id(models: Sequence[Mapping[str, Any]], key: str) -> int | None:
    return next((i for model in models for i in _id_list(model.get(key))), None)


def _chat_template(folder: Path, tokenizer_config: Mapping[str, Any]) -> str | None:
    """chat_template.jinja when there is one, else tokenizer_config.json's (of several, the one named ``default``)."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text("utf-8")
    declared = tokenizer_config.get("chat_template")
    if isinstance(declared, list):
        declared = next((t.get("template") for t in declared if t.get("name") == "default"), None)
    return declared if isinstance(declared, str) else None


def _read_json(path: Path) -> dict[str, Any]:
    """A JSON object; an absent file is an empty one."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise CheckpointError("bad_tokenizer", f"{path} is not readable as JSON: {error}") from error
    if not isinstance(value, dict):
        raise CheckpointError("bad_tokenizer", f"{path} must hold an object, not {type(value).__name__}")
    return value


def _valid_unicode(text: str) -> str:
    """`text` with lone surrogates as U+FFFD: they are no characters, and the Rust library cannot take them."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class _GenerationBlock(Extension):
    """Accepts ``{% generation %}`` blocks, which training uses to mark the assistant's words: rendered as they are."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own attribute

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _chat_environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, loopcontrols]
    )
    environment.filters["tojson"] = _to_json_text
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = TEMPLATE_DATE.strftime
    return environment


def _to_json_text(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """`tojson` as chat templates expect it: no HTML escapes, which Jinja's own filter makes."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)
