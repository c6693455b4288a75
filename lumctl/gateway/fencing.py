"""The order of writes: by lease numbers that only grow, and never two leases at once."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lumctl.devices.errors import DeviceRefusedError, StaleFenceError
from lumctl.gateway.highest import Highest

ENDS_WITHIN_S = 60.0
"""How long the end waits for writes that are being sent."""


class Fence:
    """Lets writes of the newest lease through, and those of an older one nevermore.

    ``newest`` reads the number of the newest lease from the store, ``None`` where it cannot be read: then the highest
    number that was ever seen decides.
    """

    def __init__(self, rack: str, newest: Callable[[], int | None], highest: Highest) -> None:
        self._rack = rack
        self._newest = newest
        self._highest = highest
        self._changed = threading.Condition()
        self._at_work: Counter[int] = Counter()
        self._ended = False

    @property
    def highest(self) -> int:
        """The highest number that was ever seen."""
        return self._highest.number

    @contextmanager
    def writing(self, number: int | None) -> Iterator[None]:
        """Write under a lease's number; what is still being sent under an older one is waited for.

        Raises:
            StaleFenceError: there is a newer lease; nothing was sent.
            DeviceRefusedError: no number is given, or one that no lease of this rack has; nothing was sent.
        """
        if number is None:
            raise DeviceRefusedError(
                f"a write to rack {self._rack} came without the number of a lease; nothing was sent",
                hint="only the change engine writes through a gateway: lumctl swap, fabric apply, device set",
            )
        newest = self._newest()
        with self._changed:
            self._see(number, newest)
            while any(older < number for older in self._at_work):
                self._changed.wait()
            self._see(number, None)  # a newer one may have come meanwhile
            self._at_work[number] += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work[number] -= 1
                self._at_work += Counter()  # drops what is zero
                self._changed.notify_all()

    def end(self, within_s: float = ENDS_WITHIN_S) -> bool:
        """Let nothing through any more and wait for what is being sent; whether all of it has ended."""
        with self._changed:
            self._ended = True
            return self._changed.wait_for(lambda: not self._at_work, within_s)

    def _see(self, number: int, newest: int | None) -> None:
        if self._ended:
            raise DeviceRefusedError(f"the gateway of rack {self._rack} is ending; nothing was sent")
        if newest is not None and number > newest:
            raise DeviceRefusedError(
                f"lease {number} of rack {self._rack} is not in the gateway's store, which knows {newest}; "
                "nothing was sent",
                hint="engine and gateway must use one store: the rack's `store:`, or $LUMCTL_STATE",
            )
        highest = max(self._highest.number, newest or 0)
        self._highest.raise_to(max(number, highest))
        if number < highest:
            raise self._stale(number, highest, newest)

    def _stale(self, number: int, highest: int, newest: int | None) -> StaleFenceError:
        if newest is not None and newest < highest:
            return StaleFenceError(
                f"lease {number} of rack {self._rack} is older than {highest}, which was written under before, "
                "although the store knows no newer one; nothing was sent",
                hint=f"if an old copy of the store was put back: end the gateway and remove {self._highest.path}",
            )
        return StaleFenceError(
            f"lease {number} of rack {self._rack} was followed by {highest}: its holder may write no more; "
            "nothing was sent"
        )
