"""One checkpoint over several local processes: the leader's engine in this one, a follower for every other rank.

Requests go to the followers as JSON lines; all ranks then run the same calls and meet in the sums of every layer
(Gloo, on loopback). Their rows must be the same, which is checked after every call. A follower ends with its leader.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import eval_tasks
from eval_tasks.digests import digest_value
from eval_tasks.engine.engine import Engine, assemble
from eval_tasks.engine.loading import load_model
from eval_tasks.engine.runtime import check_config, prepare_torch
from eval_tasks.errors import DataError, InfraError
from eval_tasks.records import EngineConfig, EngineTuning, Request, Response, from_json, to_json
from eval_tasks.tokenization import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    import torch

# The longest that ranks wait for one another: to be started, and within a call.
_TIMEOUT = timedelta(minutes=10)
_GRACE_SECONDS = 10
_POLL_SECONDS = 0.02


class Group:
    """The processes of one checkpoint, as one of them sees it. `place`: a file that all of them can reach.

    `alive`: raises when another rank has ended before all have met.
    """

    def __init__(self, place: Path, rank: int, degree: int, alive: Callable[[], None] = lambda: None) -> None:
        import torch

        self.rank, self.degree = rank, degree
        distributed: Any = torch.distributed
        store = distributed.FileStore(str(place), degree)
        store.set(f"here-{rank}", "")
        while not store.check([f"here-{other}" for other in range(degree)]):
            alive()
            time.sleep(_POLL_SECONDS)
        gloo = distributed.ProcessGroupGloo
        options = gloo._Options()
        options._devices = [gloo.create_device(hostname="127.0.0.1")]
        options._timeout = _TIMEOUT
        self._gloo = gloo(store, rank, degree, options)

    def total(self, part: torch.Tensor) -> torch.Tensor:
        """The sum of every rank's part, added in rank order whatever the shape. Raises InfraError when one is gone."""
        parts = self._gathered(part.contiguous())
        total = parts[0]
        for other in parts[1:]:
            total = total + other
        return total

    def agree(self, responses: Sequence[Response]) -> None:
        """Raise DataError unless every rank has these rows."""
        import torch

        rows = [to_json(dataclasses.replace(response, latency_ms=0.0)) for response in responses]
        mine = torch.frombuffer(bytearray(bytes.fromhex(digest_value(rows))), dtype=torch.uint8)
        if any(not torch.equal(other, mine) for other in self._gathered(mine)):
            raise DataError("two ranks of one engine have different rows: memory or a device of this machine is broken")

    def _gathered(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        import torch

        parts = [torch.empty_like(tensor) for _ in range(self.degree)]
        try:
            self._gloo.allgather([parts], [tensor]).wait()
        except RuntimeError as error:
            raise InfraError(f"rank {self.rank} of {self.degree} has lost another one: {error}") from error
        return parts


class Leader:
    """Rank 0's side: started followers, and a number for every engine that they hold too."""

    def __init__(self, folder: Path, config: EngineConfig, tuning: EngineTuning, context: int) -> None:
        self._numbers = itertools.count(1)
        scratch = tempfile.TemporaryDirectory(prefix="checkpoint-eval-ranks-")
        place = Path(scratch.name) / "store"
        self._followers = [_start(rank) for rank in range(1, config.tensor_parallel)]
        self._end = weakref.finalize(self, _end, self._followers, scratch)
        for rank, _ in enumerate(self._followers, start=1):
            self._tell(
                rank,
                {
                    "folder": str(folder.resolve()),
                    "place": str(place),
                    "rank": rank,
                    "config": to_json(config),
                    "tuning": to_json(tuning),
                    "context": context,
                },
            )
        self.group = Group(place, 0, config.tensor_parallel, self._check_alive)

    def add(self, parent: int, config: EngineConfig, tuning: EngineTuning) -> int:
        """The number of a further engine over the same weights."""
        number = next(self._numbers)
        self._tell_all({"number": number, "parent": parent, "config": to_json(config), "tuning": to_json(tuning)})
        return number

    def ask(self, number: int, requests: Sequence[Request]) -> None:
        """Have the followers run these requests too. Texts that an engine never reads stay here."""
        bare = [dataclasses.replace(request, prompt="", choices=()) for request in requests]
        self._tell_all({"number": number, "requests": [to_json(request) for request in bare]})

    def _check_alive(self) -> None:
        for rank, process in enumerate(self._followers, start=1):
            if process.poll() is not None:
                raise InfraError(_ended(rank, process))

    def _tell_all(self, message: dict[str, Any]) -> None:
        for rank, _ in enumerate(self._followers, start=1):
            self._tell(rank, message)

    def _tell(self, rank: int, message: dict[str, Any]) -> None:
        process = self._followers[rank - 1]
        try:
            stream = _stdin(process)
            stream.write(json.dumps(message).encode() + b"\n")
            stream.flush()
        except OSError as error:
            raise InfraError(_ended(rank, process)) from error


class ParallelEngine(Engine):
    """An engine one rank of which computes here. See Engine."""

    def __init__(self, *, leader: Leader, number: int = 0, **parts: Any) -> None:
        super().__init__(**parts)
        self._leader = leader
        self._number = number

    def respond(self, requests: Sequence[Request]) -> list[Response]:
        """See Engine. Raises InfraError when a rank is gone, DataError when two have different rows."""
        self._leader.ask(self._number, requests)
        responses = super().respond(requests)
        self._leader.group.agree(responses)
        return responses

    def _with(self, config: EngineConfig, tuning: EngineTuning) -> Engine:
        check_config(config, tuning)
        return ParallelEngine(
            leader=self._leader,
            number=self._leader.add(self._number, config, tuning),
            config=config,
            tuning=tuning,
            tokenizer=self.tokenizer,
            body=self._body,
            head=self._head,
            context=self.context,
        )


def load_parallel(
    folder: Path, config: EngineConfig, tuning: EngineTuning, tokenizer: Tokenizer, context: int
) -> ParallelEngine:
    """The engine of rank 0, with its followers started. Raises what `loading.load_model` raises, and InfraError."""
    leader = Leader(folder, config, tuning, context)
    parts = _parts(folder, config, tokenizer, leader.group)
    return ParallelEngine(leader=leader, config=config, tuning=tuning, tokenizer=tokenizer, context=context, **parts)


def follow(lines: IO[bytes]) -> None:
    """Be a follower: the first line says of what, every other one what to do, until there is none."""
    first = json.loads(lines.readline())
    folder, config = Path(first["folder"]), from_json(EngineConfig, first["config"])
    tuning, context = from_json(EngineTuning, first["tuning"]), int(first["context"])
    group = Group(Path(first["place"]), int(first["rank"]), config.tensor_parallel)
    prepare_torch(config)
    tokenizer = load_tokenizer(folder)
    parts = _parts(folder, config, tokenizer, group)

    def engine(config: EngineConfig, tuning: EngineTuning) -> Engine:
        return Engine(config=config, tuning=tuning, tokenizer=tokenizer, context=context, **parts)

    engines = {0: engine(config, tuning)}
    for line in lines:
        message = json.loads(line)
        number = message["number"]
        if "requests" in message:
            requests = [from_json(Request, request) for request in message["requests"]]
            group.agree(engines[number].respond(requests))
        else:
            engines[number] = engine(
                from_json(EngineConfig, message["config"]), from_json(EngineTuning, message["tuning"])
            )


def _parts(folder: Path, config: EngineConfig, tokenizer: Tokenizer, group: Group) -> dict[str, Any]:
    """This rank's share of the model, and the whole head: every rank writes the same next token."""
    import torch

    device = torch.device(config.device)
    # No name for the model here: it is used up, and what is packed is let go of as it goes.
    body, head = assemble(
        load_model(folder, config.dtype, device, tokenizer.vocab_size), config, rank=group.rank, total=group.total
    )
    return {"body": body, "head": head}


def _start(rank: int) -> subprocess.Popen[bytes]:
    root = str(Path(eval_tasks.__file__).parents[1])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    code = "import sys; from eval_tasks.engine.ranks import follow; follow(sys.stdin.buffer)"
    return subprocess.Popen(
        [sys.executable, "-c", code, f"rank-{rank}"],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        # Ctrl-C is for the leader, whose end is theirs.
        start_new_session=True,
    )


def _end(followers: Sequence[subprocess.Popen[bytes]], scratch: tempfile.TemporaryDirectory[str]) -> None:
    for process in followers:
        with contextlib.suppress(BrokenPipeError):
            _stdin(process).close()
    for process in followers:
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    scratch.cleanup()


def _ended(rank: int, process: subprocess.Popen[bytes]) -> str:
    return f"rank {rank} has ended with exit code {process.poll()}; what it wrote to the log says why"


def _stdin(process: subprocess.Popen[bytes]) -> IO[bytes]:
    if process.stdin is None:
        raise RuntimeError("a follower was started without a pipe")
    return process.stdin
