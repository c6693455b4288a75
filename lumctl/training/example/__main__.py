"""``python -m lumctl.training.example``: train a small Llama, under lumctl, under torchrun, or alone."""

import argparse
import sys
from pathlib import Path

from lumctl.errors import LumctlError
from lumctl.training.example.config import SIZES
from lumctl.training.example.parallelism import WAYS
from lumctl.training.example.train import TrainOptions, train


def main() -> int:
    """Train to the end; an exit code."""
    parser = argparse.ArgumentParser(prog="python -m lumctl.training.example", description="Train a small Llama.")
    parser.add_argument("--parallel", choices=WAYS, default=TrainOptions.parallel, help="how ranks share the work")
    parser.add_argument("--steps", type=_count, default=TrainOptions.steps, help="steps in all")
    parser.add_argument("--size", choices=tuple(SIZES), default=TrainOptions.size)
    parser.add_argument(
        "--seed", type=int, default=TrainOptions.seed, help="of the weights and of the order of the text"
    )
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="where checkpoints go, and come from")
    parser.add_argument("--every", type=_count, default=TrainOptions.every, help="a checkpoint after so many steps")
    parser.add_argument("--losses", type=Path, metavar="FILE", help="add a line for each step: its number, its loss")
    parser.add_argument("--text", type=Path, metavar="FILE", help="learn from this, not from Python's own sources")
    try:
        train(TrainOptions(**vars(parser.parse_args())))
    except LumctlError as error:
        return told(error)
    except OSError as error:
        return told(LumctlError(f"{error.filename or 'the system'}: {error.strerror or error}"))
    return 0


def told(error: LumctlError) -> int:
    """One line of what happened, one of what to do."""
    lines = [f"error: {error.message}"] + ([f"hint: {error.hint}"] if error.hint else [])
    print("\n".join(lines), file=sys.stderr)  # noqa: T201 - the script's own output
    return int(error.exit_code)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
