"""``python -m lumctl.training.example``: train a small Llama, under lumctl, under torchrun, or alone."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

import lumctl.training.torch as recovery
from lumctl.errors import LumctlError
from lumctl.training.example.data import Losses, Windows, own_text
from lumctl.training.example.model import SIZES, Llama, Size
from lumctl.training.example.parallelism import WAYS, adamw, bytes_of, learner, set_rate, share_of_loss

TOLD_EVERY = 10


@dataclass(frozen=True)
class TrainOptions:
    """Command-line options of the training."""

    parallel: str = "data"
    steps: int = 200
    size: str = "tiny"
    seed: int = 1
    checkpoint: Path | None = None
    every: int = 50
    """The number of steps between checkpoints."""
    losses: Path | None = None
    text: Path | None = None


def train(options: TrainOptions) -> None:
    """Run this process's part of the job to its end.

    Raises:
        UsageError: there are too many ranks, or the text is too short.
    """
    torch.set_num_threads(1)  # one core per rank, and sums in a fixed order
    size = SIZES[options.size]

    def average(parameters: Iterable[nn.Parameter]) -> None:
        job.average(parameters)

    ours = learner(options.parallel, size, seed=options.seed, average=average)
    text = options.text.read_bytes() if options.text else own_text()
    windows = Windows(text, context=size.context, sequences=size.sequences, seed=options.seed)
    losses = Losses(options.losses)
    warm(size, windows)
    with recovery.attach(
        model=ours.model,
        optimizer=ours.optimizer,
        state={"losses": losses},
        layout=ours.layout,
        shape=ours.shape,
        seed=options.seed,
        checkpoint=options.checkpoint,
        every=options.every,
    ) as job:
        began, first = time.monotonic(), None
        for step in job.steps(options.steps):
            number = step.number
            first = number if first is None else first
            with step:
                set_rate(ours.optimizer, number, options.steps)
                loss = ours.gradients(lambda rank, world: windows.batch(number, rank, world)).item()  # noqa: B023 - now
                losses.note(number, loss)
                ours.optimizer.step()
                step.report(loss)
                if job.rank == 0:
                    losses.write()
                    if number % TOLD_EVERY == 0 or number == options.steps - 1:
                        tell(f"step {number} loss {loss:.4f}")
        if job.rank == 0 and first is not None:
            each_ms = 1000 * (time.monotonic() - began) / (options.steps - first)
            tell(f"{job.world} ranks, {each_ms:.1f} ms a step, {bytes_of(ours):,} bytes of state on this rank")


def warm(size: Size, windows: Windows) -> None:
    """Do a step and discard its effect: PyTorch's first step is slow, and must not delay a recovery."""
    model = Llama(size, seed=0)
    torch.autograd.backward(share_of_loss(model.loss(windows.batch(0)), size))
    adamw(model.parameters()).step()


def tell(line: str) -> None:
    """Print a line of the training at once."""
    print(line, flush=True)  # noqa: T201 - the script's own output


def main() -> int:
    """Train to the end; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lumctl.training.example", description="Train a small Llama.")
    parser.add_argument("--parallel", choices=WAYS, default=TrainOptions.parallel, help="how ranks share the work")
    add_options(parser, SIZES)
    return exit_code_of(lambda: train(TrainOptions(**vars(parser.parse_args()))))


def exit_code_of(run: Callable[[], None]) -> int:
    """Run a script; print its error, if it ends with one that a user can act on, and return the exit code."""
    try:
        run()
    except LumctlError as error:
        return _print_error(error)
    except OSError as error:
        return _print_error(LumctlError(f"{error.filename or 'the system'}: {error.strerror or error}"))
    return 0


def add_options(parser: argparse.ArgumentParser, sizes: Iterable[str]) -> None:
    """Add the options that each way to train has; ``sizes`` are the names of its models."""
    parser.add_argument("--steps", type=count, default=TrainOptions.steps, help="steps in all")
    parser.add_argument("--size", choices=tuple(sizes), default=TrainOptions.size)
    parser.add_argument(
        "--seed", type=int, default=TrainOptions.seed, help="seed of the weights and of the order of the text"
    )
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="folder in which checkpoints are written and read"
    )
    parser.add_argument(
        "--every", type=count, default=TrainOptions.every, help="number of steps between two checkpoints"
    )
    parser.add_argument(
        "--losses", type=Path, metavar="FILE", help="append a line for each step to this file: its number, its loss"
    )
    parser.add_argument("--text", type=Path, metavar="FILE", help="train on this text instead of Python's own sources")


def _print_error(error: LumctlError) -> int:
    """Print an error and its hint; return the exit code."""
    lines = [f"error: {error.message}"] + ([f"hint: {error.hint}"] if error.hint else [])
    print("\n".join(lines), file=sys.stderr)  # noqa: T201 - the script's own output
    return int(error.exit_code)


def count(text: str) -> int:
    """A number of at least 1, from the command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
