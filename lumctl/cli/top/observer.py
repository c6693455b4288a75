"""The eyes of the dashboard: the daemon's where one runs, else its own."""

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from lumctl.context import Context, Observation


class Observer:
    """Looks at a rack again and again: with the daemon's eyes where one runs, else through one open context.

    After a look in which no host answered the context is opened anew: a simulator that was started again answers at
    other addresses. While the daemon looks, no context is kept open.
    """

    def __init__(
        self,
        open_context: "Callable[[], Context]",
        ask_daemon: "Callable[[], Observation | None]" = lambda: None,
    ) -> None:
        self._open_context = open_context
        self._ask_daemon = ask_daemon
        self._context: Context | None = None

    def __enter__(self) -> Self:
        if self._ask_daemon() is None:
            self._context = self._open_context()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self) -> "Observation":
        """Read everything once."""
        seen = self._ask_daemon()
        if seen is not None:
            self._close()
            return seen
        self._context = context = self._context or self._open_context()
        observation = context.observe()
        if not any(host.reachable for host in observation.snapshot.hosts.values()):
            self._close()
        return observation

    def _close(self) -> None:
        if self._context is not None:
            self._context.close()
            self._context = None
