"""``python -m lumctl.training.agent serve FOLDER`` and ``... bridge FOLDER [--take] [--who NAME]``."""

import sys
from pathlib import Path

from lumctl.errors import LumctlError, UsageError
from lumctl.training.agent.bridge import bridge
from lumctl.training.agent.daemon import serve
from lumctl.training.wire import encoded

USAGE = "python -m lumctl.training.agent serve FOLDER | bridge FOLDER [--take] [--who NAME]"


def main(words: list[str]) -> int:
    """Do what the command line says; its exit code."""
    try:
        match words:
            case ["serve", folder]:
                serve(Path(folder))
            case ["bridge", folder, *flags, "--who", who] if flags in ([], ["--take"]):
                _bridge(Path(folder), take=bool(flags), who=who)
            case ["bridge", folder, *flags] if flags in ([], ["--take"]):
                _bridge(Path(folder), take=bool(flags))
            case _:
                raise UsageError(f"usage: {USAGE}")
    except LumctlError as error:
        sys.stderr.write(f"error: {error.message}\n" + (f"hint: {error.hint}\n" if error.hint else ""))
        return int(error.exit_code)
    return 0


def _bridge(folder: Path, *, take: bool, who: str | None = None) -> None:
    try:
        bridge(folder, take=take, who=who)
    except LumctlError as error:
        # The coordinator's end of the line may not see what we print beside it.
        sys.stdout.buffer.write(encoded({"tell": "refused", "why": error.message, "hint": error.hint}))
        sys.stdout.flush()
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
