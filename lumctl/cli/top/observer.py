"""The eyes of the dashboard: the daemon's where one runs, else its own."""

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from lumctl.site import Observation, Site


class Observer:
    """Looks at a rack again and again: with the daemon's eyes where one runs, else through one open site.

    After a look in which no host answered the site is opened anew: a simulator that was started again answers at
    other addresses. While the daemon looks, no site is kept open.
    """

    def __init__(
        self,
        open_site: "Callable[[], Site]",
        ask_daemon: "Callable[[], Observation | None]" = lambda: None,
    ) -> None:
        self._open_site = open_site
        self._ask_daemon = ask_daemon
        self._site: Site | None = None

    def __enter__(self) -> Self:
        if self._ask_daemon() is None:
            self._site = self._open_site()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self) -> "Observation":
        """Read everything once."""
        seen = self._ask_daemon()
        if seen is not None:
            self._close()
            return seen
        self._site = site = self._site or self._open_site()
        observation = site.observe()
        if not any(host.reachable for host in observation.snapshot.hosts.values()):
            self._close()
        return observation

    def _close(self) -> None:
        if self._site is not None:
            self._site.close()
            self._site = None
