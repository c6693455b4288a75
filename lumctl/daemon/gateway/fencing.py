"""The order of writes: by lease numbers that only grow, and never two leases at once.

A lease is given in the store, and no lock reaches from there to a device: a permitted write may still be in transit
when a newer lease is given. That does no harm, because the holder of the newer lease has not read the rack yet. The
first read or write under a number makes it the highest here; from then on no older lease begins a write, and a read
waits until the present writes are over. So the readings of a lease's holder change only by its own writes. Within one
device this also holds for reads without a number: a device has one request at a time, and the newest lease number is
read in the same turn as the device is written.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, StaleFenceError
from lumctl.errors import LumctlError
from lumctl.files import write_whole

HIGHEST_FILE = "gateway.fence"
MOST = 2**31 - 1_000
"""No lease has a higher number: databases store it in 32 bits."""
SLOW_S = 1.0
LEFT_ALONE_S = 15.0
"""For how long a store that failed slowly is not asked again: otherwise it would delay each step of a rollback."""


class HighestLease:
    """The highest lease number seen. A file keeps it over restarts, when the store may be unreachable."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self.path = path
        self.number = 0
        self._say = say
        with suppress(FileNotFoundError):
            try:
                self.number = _plausible(int(path.read_bytes()[:32]))
            except (OSError, ValueError) as error:
                if isinstance(error, FileNotFoundError):
                    raise
                say(f"{path} cannot be read: {error}; until the store tells, older leases are not known")

    def raise_to(self, number: int) -> None:
        """Take a number; if it is the highest, it is on disk when this returns."""
        if number <= self.number:
            return
        self.number = number
        try:
            # Mode 0600 whatever the umask is: the content decides which leases are refused.
            write_whole(self.path, b"%d\n" % number)
        except OSError as error:
            self._say(f"{self.path} cannot be written: {error.strerror}; lease {number} is remembered until the end")


def _plausible(number: int) -> int:
    if not 0 <= number <= MOST:
        raise ValueError(f"no lease has the number {number}")
    return number


class NewestLease:
    """The store's newest lease number. ``read`` and ``raise_above`` (which raises it first) ask the store."""

    def __init__(
        self,
        read: Callable[[], int],
        raise_above: Callable[[int], int],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._raise_above = raise_above
        self._say = say
        self._clock = clock
        self._lock = threading.Lock()
        self._troubles: dict[str, str] = {}
        self._not_before = clock()

    def __call__(self) -> int | None:
        """The number; ``None`` if the store cannot be read now (reported once)."""
        return self._tried("read", self._read, "the highest lease seen decides")

    def shut_out(self, highest: int) -> int | None:
        """Make the store give no lease a number up to ``highest``; ``None`` if it cannot be written now."""
        found = self._tried("written", lambda: self._raise_above(highest), f"no lease up to {highest} may write")
        if found is not None:
            self._say(
                f"lease {highest} came to the gateway, and the store does not know it: an engine that uses another "
                f"store, or an old copy of the store; no lease up to {found} may write any more, the next one may"
            )
        return found

    def _tried(self, how: str, ask: Callable[[], int], otherwise: str) -> int | None:
        began = self._clock()
        if began < self._not_before:
            return None
        trouble, number = "", None
        try:
            number = ask()
        except LumctlError as error:
            trouble = error.message
        except Exception as error:  # noqa: BLE001 - whatever prevents reading it, a write must have an answer
            trouble = f"{type(error).__name__}: {error}"
        if trouble and (ended := self._clock()) - began > SLOW_S:
            self._not_before = ended + LEFT_ALONE_S
        with self._lock:
            if bool(trouble) != bool(self._troubles.get(how)):
                self._say(f"{trouble}; {otherwise}" if trouble else f"the store can be {how} again")
            self._troubles[how] = trouble
        return number


ENDS_WITHIN_S = 60.0
"""How long the end of the gateway waits for writes that are being sent."""
LOOKS_WITHIN_S = 15.0
"""How long a read waits for writes of an older lease: less than its client waits for the answer."""
MOST_UNTOLD = 1_000_000
"""By how much a number may exceed the highest one while the store cannot be asked: leases are given one by one, so a
number far above is invalid."""


class Fence:
    """Permits writes of the newest lease and refuses those of older ones for good.

    ``newest`` reads the number of the newest lease from the store, ``None`` if it cannot be read: then the highest
    known number decides. ``shut_out`` makes the store skip lease numbers up to one that it does not know but that was
    used, and returns its newest number then, ``None`` if that fails.
    """

    def __init__(
        self, rack: str, newest: Callable[[], int | None], shut_out: Callable[[int], int | None], highest: HighestLease
    ) -> None:
        self._rack = rack
        self._newest = newest
        self._shut_out = shut_out
        self._highest = highest
        self._changed = threading.Condition()
        self._at_work: Counter[int] = Counter()
        self._ended = False
        self._is_settled = False

    @property
    def highest(self) -> int:
        """The highest number seen."""
        return self._highest.number

    @contextmanager
    def writing(self, number: int | None) -> Iterator[None]:
        """Write under a lease's number, after writes of older leases have ended.

        Raises:
            StaleFenceError: there is a newer lease; nothing was sent.
            DeviceRefusedError: no number is given, or one that no lease of this rack has; nothing was sent.
        """
        if number is None:
            raise DeviceRefusedError(
                f"a write to rack {self._rack} came without the number of a lease; nothing was sent",
                hint="only the change engine writes through a gateway: lumctl swap, fabric apply, device set",
            )
        self._begin(number)
        try:
            yield
        finally:
            with self._changed:
                self._at_work[number] -= 1
                self._at_work += Counter()  # drops what is zero
                self._changed.notify_all()

    def look(self, number: int | None) -> None:
        """Call before a read under a lease's number: from now on no older lease begins a write, and none is in transit.

        A read needs no lease: one without a number, or with a number that the store does not know, does not wait.

        Raises:
            DeviceUnreachableError: a write of an older lease does not end.
        """
        if number is None:
            return
        newest = None if number <= self.highest else self._asked()
        with self._changed:
            if number > self.highest:
                if not self._may_be(number, newest):
                    return
                self._raise_to(number, newest)
            if number == self.highest and not self._changed.wait_for(lambda: not self._older(number), LOOKS_WITHIN_S):
                raise DeviceUnreachableError(
                    f"a write under a lease of rack {self._rack} older than {number} is still being sent; "
                    "nothing was read",
                    hint="it ends within the device's own time limit; then say it again",
                )

    def settle(self) -> None:
        """Make sure that the store knows every number that was used for a write."""
        if not self._is_settled:
            self._asked()

    def end(self, within_s: float = ENDS_WITHIN_S) -> bool:
        """Refuse all further writes and wait for those that are being sent; whether all have ended."""
        with self._changed:
            self._ended = True
            return self._changed.wait_for(lambda: not self._at_work, within_s)

    def _begin(self, number: int) -> None:
        while True:
            # The store may be slow, so it is asked without the lock; others may raise the highest number meanwhile.
            newest = self._asked()
            with self._changed:
                self._see(number, newest)
                if not self._older(number):
                    self._at_work[number] += 1
                    return
                self._changed.wait()
            # A newer lease may have been given while this one waited.

    def _older(self, number: int) -> bool:
        """Whether a write of an older lease is being sent."""
        return any(older < number for older in self._at_work)

    def _asked(self) -> int | None:
        """The store's newest lease number, after it was raised to the highest number seen if it was lower."""
        highest = self.highest  # read first: a lease that the store gives meanwhile is known to it
        newest = self._newest()
        if newest is not None and newest < highest and (above := self._shut_out(highest)) is not None:
            newest = above
        if newest is not None and newest >= self.highest:
            self._is_settled = True
        return newest

    def _may_be(self, number: int, newest: int | None) -> bool:
        """Whether a lease can have a number, by the store or, if it cannot be asked, by the numbers before."""
        return 0 < number <= (min(self.highest + MOST_UNTOLD, MOST) if newest is None else newest)

    def _raise_to(self, number: int, newest: int | None) -> None:
        if number > self.highest:
            self._is_settled = newest is not None and number <= newest
            self._highest.raise_to(number)

    def _see(self, number: int, newest: int | None) -> None:
        if self._ended:
            raise DeviceRefusedError(f"the gateway of rack {self._rack} is ending; nothing was sent")
        if not self._may_be(number, newest):
            known = f"is not in the gateway's store, which knows {newest}"
            if newest is None:
                known = f"is far above {self.highest}, the highest one known, and the store cannot be asked"
            raise DeviceRefusedError(
                f"lease {number} of rack {self._rack} {known}; nothing was sent",
                hint="engine and gateway must use one store: the rack's `store:`, or $LUMCTL_STATE",
            )
        highest = max(self.highest, newest or 0)
        self._raise_to(max(number, highest), newest)
        if number < highest:
            raise self._stale(number, highest, newest)

    def _stale(self, number: int, highest: int, newest: int | None) -> StaleFenceError:
        if newest is not None and newest < highest:
            return StaleFenceError(
                f"lease {number} of rack {self._rack} is older than {highest}, which was seen before, although the "
                "store knows no newer one and cannot be told so; nothing was sent",
                hint="the gateway must be able to write to its store: see what it says; then say it again",
            )
        return StaleFenceError(
            f"lease {number} of rack {self._rack} was followed by {highest}: its holder may write no more; "
            "nothing was sent"
        )
