"""One error that reports everything that is wrong with the options of a command."""

from collections.abc import Callable
from typing import TypeVar

from lumctl.errors import UsageError

T = TypeVar("T")


class OptionErrors:
    """Collects the errors of several checks."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str | None], UsageError] = {}

    def checked(self, check: Callable[[], T]) -> T | None:
        """The result of a check; ``None``, with its error noted, if it refuses. The same error twice counts once."""
        try:
            return check()
        except UsageError as error:
            self.note(error)
            return None

    def note(self, error: UsageError) -> None:
        """Note an error."""
        self._found[error.message, error.hint] = error

    def require_none(self) -> None:
        """Raise the errors that were noted: one as it is, several as one error with a line for each.

        Raises:
            UsageError: there is an error.
        """
        found = list(self._found.values())
        if len(found) == 1:
            raise found[0]
        if found:
            lines = [error.message + (f"; {error.hint}" if error.hint else "") for error in found]
            raise UsageError("\n".join([f"{len(lines)} errors in the options", *lines]))
