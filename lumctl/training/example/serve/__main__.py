"""``python -m lumctl.training.example.serve``: the model behind HTTP, its parts on the ranks of a job."""

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

import lumctl.training.torch as recovery
from lumctl.errors import LumctlError
from lumctl.training.example.__main__ import told
from lumctl.training.example.config import SIZES
from lumctl.training.example.model import Llama
from lumctl.training.example.parallelism import SERVED, served
from lumctl.training.example.serve.http_server import HttpServer
from lumctl.training.example.serve.inference import follow, lead
from lumctl.training.example.serve.request_queue import RequestQueue


@dataclass(frozen=True)
class ServeOptions:
    """What is served, and where."""

    parallel: str
    size: str
    seed: int
    port: int
    patience: float
    announce: Path | None


def serve(options: ServeOptions) -> None:
    """Take part in turns until the job is stopped.

    The weights come from the seed and never change, so no state is handed over: a spare has made its own.

    Raises:
        UnreachableError: rank 0 cannot listen.
        UsageError: the ranks are too many.
    """
    torch.set_num_threads(1)
    size = SIZES[options.size]
    ours = served(options.parallel, size, seed=options.seed)
    with torch.no_grad():  # what PyTorch does at its first step must not keep others waiting for a spare
        Llama(size, seed=0)(torch.zeros(1, size.context, dtype=torch.long))
    front: tuple[HttpServer, RequestQueue] | None = None
    try:
        with recovery.attach(layout=ours.layout, shape=ours.shape, seed=options.seed) as job:
            for step in job.steps(None):
                if job.rank == 0:
                    front = front or _open(options)
                elif front is not None:
                    front[0].close()
                    front = None
                with step:
                    if front is not None:
                        lead(ours, front[1], job.world)
                    else:
                        follow(ours, job.world)
    finally:
        if front is not None:
            front[0].close()


def _open(options: ServeOptions) -> tuple[HttpServer, RequestQueue]:
    address = os.environ.get("LUMCTL_JOB_ADDRESS", "127.0.0.1")
    queue = RequestQueue(patience_s=options.patience)
    front = HttpServer(address, options.port, queue, patience_s=options.patience)
    if options.announce is not None:
        new = options.announce.with_name(f".{options.announce.name}.{os.getpid()}")
        new.write_text(front.url + "\n")
        new.replace(options.announce)
    print(f"serving on {front.url}", flush=True)  # noqa: T201 - the script's own output
    return front, queue


def main() -> int:
    """Serve to the end; an exit code."""
    parser = argparse.ArgumentParser(prog="python -m lumctl.training.example.serve", description="Serve a small Llama.")
    parser.add_argument("--parallel", choices=tuple(SERVED), default="pipeline", help="how ranks hold the weights")
    parser.add_argument("--size", choices=tuple(SIZES), default="tiny")
    parser.add_argument("--seed", type=int, default=1, help="of the weights")
    parser.add_argument("--port", type=int, default=8080, help="where rank 0 listens; 0: any that is free")
    parser.add_argument("--patience", type=float, default=5.0, help="seconds that a request waits for a recovery")
    parser.add_argument("--announce", type=Path, metavar="FILE", help="write the address to this file")
    try:
        serve(ServeOptions(**vars(parser.parse_args())))
    except LumctlError as error:
        return told(error)
    except OSError as error:
        return told(LumctlError(f"{error.filename or 'the system'}: {error.strerror or error}"))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
