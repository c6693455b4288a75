"""A program of the operator's that is run for each notification: the document on its standard input, no shell."""

import shlex
from pathlib import Path

from lumctl.daemon.letter import Letter
from lumctl.daemon.webhook import DeliveryError
from lumctl.errors import UsageError
from lumctl.programs import NotStartedError, run_program

TIMEOUT_S = 30.0
REFUSES = 65
"""The exit code of a program that does not want a notification, however often it is given (EX_DATAERR)."""
_TOLD = ("occasion", "text", "rack", "target", "component", "state_after", "incident")


def parse_command(text: str) -> tuple[str, ...]:
    """The program and its arguments, as a shell would part them; none of a shell's other habits apply.

    Raises:
        UsageError: there is no such program.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"the command {text!r} cannot be understood: {error}") from None
    if not words:
        raise UsageError("the command of notifications is empty")
    require_program(words[0])
    return words


def require_program(path: str) -> None:
    """Require a program at an absolute path.

    Raises:
        UsageError: there is none.
    """
    program = Path(path)
    if not program.is_absolute():
        raise UsageError(
            f"{path!r} is no absolute path", hint="such as /etc/lumctl/notify: a daemon has no PATH of yours"
        )
    if not program.is_file():
        raise UsageError(f"there is no program {program}")


def run(command: tuple[str, ...], letter: Letter, *, timeout_s: float = TIMEOUT_S) -> None:
    """Hand one letter to a program.

    Raises:
        DeliveryError: it did not take it: it ended otherwise than with 0, or took too long.
    """
    variables = {f"LUMCTL_{key.upper()}": str(letter.document[key]) for key in _TOLD if letter.document.get(key)}
    name = Path(command[0]).name
    try:
        ended = run_program(command, timeout_s=timeout_s, given=letter.body, variables=variables)
    except NotStartedError as error:
        raise DeliveryError(error.message, again=True) from None
    if ended.late:
        raise DeliveryError(f"{name} had not ended after {timeout_s:g} s, and was ended", again=True)
    if ended.code:
        said = f": {ended.last_line}" if ended.last_line else ""
        raise DeliveryError(f"{name} ended with {ended.code}{said}", again=ended.code != REFUSES)
