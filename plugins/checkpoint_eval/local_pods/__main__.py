"""The command line: `python -m checkpoint_eval.local_pods --state DIR --kubeconfig PATH`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from decimal import Decimal
from pathlib import Path

from checkpoint_eval.local_pods.kubelet import Node
from checkpoint_eval.local_pods.quantities import quantity
from checkpoint_eval.local_pods.server import ServerOptions, serve
from eval_tasks.errors import UserError


def _forbidden(text: str) -> tuple[str, str]:
    verb, _, resource = text.partition(":")
    if not verb or not resource:
        raise argparse.ArgumentTypeError(f"{text!r} is not verb:resource, such as create:pods or get:pods/log")
    return verb, resource


def _options(arguments: list[str] | None) -> ServerOptions:
    parser = argparse.ArgumentParser(
        prog="python -m checkpoint_eval.local_pods",
        description="The part of the Kubernetes pod API that the pod operator uses, with pods as local processes.",
    )
    parser.add_argument("--state", type=Path, required=True, help="directory of records, logs and the token")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="where to write the kubeconfig file")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0: the one of the last start, or any")
    parser.add_argument("--cpu", type=quantity, default=Decimal(os.cpu_count() or 1), help="cores to admit pods for")
    parser.add_argument("--gpus", type=int, default=0, help="devices to admit pods for, as nvidia.com/gpu")
    parser.add_argument(
        "--pass-env", action="append", default=[], metavar="NAME", help="variable (or pattern) for pods"
    )
    parser.add_argument(
        "--refuse-image", action="append", default=[], metavar="IMAGE", help="an image that never pulls"
    )
    parser.add_argument("--forbid", type=_forbidden, action="append", default=[], metavar="VERB:RESOURCE")
    parser.add_argument("--kill-on-exit", action="store_true", help="end running pods when the server is stopped")
    given = parser.parse_args(arguments)
    node = Node(
        capacity={"cpu": given.cpu, "nvidia.com/gpu": Decimal(given.gpus)},
        pass_env=tuple(given.pass_env),
        refused_images=tuple(given.refuse_image),
    )
    return ServerOptions(
        state_dir=given.state,
        kubeconfig=given.kubeconfig.absolute(),
        port=given.port,
        node=node,
        refused=frozenset(given.forbid),
        kill_on_exit=given.kill_on_exit,
    )


def main(arguments: list[str] | None = None) -> int:
    """Exit code 2 when the way it was started is wrong."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s local-pods %(levelname)s %(message)s")
    try:
        serve(_options(arguments))
    except UserError as error:
        logging.getLogger("local_pods").error("%s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
