"""`convert`: a trainer's distributed checkpoint to the folder that everything else here reads."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from eval_tasks.checkpoint import convert
from eval_tasks.checkpoint.conversion import DTYPES
from eval_tasks.cli.output import json_option, print_json, progress_bar


@click.command("convert")
@click.argument("source")
@click.option("--model", required=True, help="Folder with the model's config.json, tokenizer.json and the like.")
@click.option("--into", type=click.Path(path_type=Path), required=True, help="Folder to make; it must not exist.")
@click.option("--prefix", default="", help="Take the tensors whose names begin so, without it (often 'model.').")
@click.option("--dtype", type=click.Choice(DTYPES), help="Round weights to it; without, each keeps its own.")
@json_option
def convert_command(source: str, model: str, into: Path, prefix: str, dtype: str | None, as_json: bool) -> None:
    """Make a Hugging Face folder of a PyTorch distributed checkpoint; no code that lies in it is run."""
    with progress_bar("tensors") as progress:
        made = convert(source, model=model, into=into, prefix=prefix, dtype=dtype or "", progress=progress)
    if as_json:
        print_json(asdict(made))
        return
    click.echo(
        f"{into}: {made.n_tensors} tensors of {made.source_uri}, {made.left_out} others left out\n"
        f"source {made.source_digest[:12]} -> checkpoint {made.checkpoint_id[:12]}"
    )


COMMANDS = (convert_command,)
