"""Fencing of writes by lease numbers: numbers only grow, and two leases never write at once.

The store grants leases, and no lock reaches from the store to a device: a permitted write may still be in transit when
a newer lease is granted. That does no harm, because the holder of the newer lease has not read the rack yet. The first
read or write under a number makes it the highest here. From then on no older lease begins a write, and a read waits
until writes in transit have ended. So the holder of a lease reads only changes that it made itself. Within one
device this also holds for reads without a number: a device serves one request at a time, and the newest lease number is
read in the same turn in which the device is written.
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
"""The maximum number of a lease: databases store the number in 32 bits."""
SLOW_S = 1.0
LEFT_ALONE_S = 15.0
"""How long a store is not read again after it failed slowly; otherwise it would delay each step of a rollback."""


class HighestLease:
    """The highest lease number seen. A file keeps it across restarts, because the store may be unreachable then."""

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
                say(f"{path} cannot be read: {error}; until the store can be read, older leases are unknown")

    def raise_to(self, number: int) -> None:
        """Accept a number; if it is the highest so far, it is on disk when this returns."""
        if number <= self.number:
            return
        # First in memory: even if the file cannot be written, this process refuses older leases.
        self.number = number
        try:
            # Mode 0600 with any umask: the content decides which leases are refused.
            write_whole(self.path, b"%d\n" % number)
        except OSError as error:
            self._say(
                f"{self.path} cannot be written: {error.strerror}; lease {number} is remembered only until the "
                "gateway ends"
            )


def _plausible(number: int) -> int:
    if not 0 <= number <= MOST:
        raise ValueError(f"no lease has the number {number}")
    return number


class NewestLease:
    """The store's newest lease number. ``read`` reads it; ``raise_above`` first raises it above a number."""

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
        """The newest lease number; ``None`` if the store cannot be read now (reported once)."""
        return self._tried("read", self._read, "the highest lease seen decides")

    def shut_out(self, highest: int) -> int | None:
        """Make the store skip all lease numbers up to ``highest``; ``None`` if the store cannot be written now."""
        found = self._tried("written", lambda: self._raise_above(highest), f"no lease up to {highest} may write")
        if found is not None:
            self._say(
                f"lease {highest} was presented to the gateway, but the store does not contain it: the engine uses "
                f"another store, or an old copy of the store; no lease up to {found} may write any more, only the "
                "next one"
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
        except Exception as error:  # noqa: BLE001 - a write must get an answer after any error
            trouble = f"{type(error).__name__}: {error}"
        if trouble and (ended := self._clock()) - began > SLOW_S:
            self._not_before = ended + LEFT_ALONE_S
        with self._lock:
            if bool(trouble) != bool(self._troubles.get(how)):
                self._say(f"{trouble}; {otherwise}" if trouble else f"the store can be {how} again")
            self._troubles[how] = trouble
        return number


ENDS_WITHIN_S = 60.0
"""How long an ending gateway waits for writes in transit."""
LOOKS_WITHIN_S = 15.0
"""How long a read waits for writes of an older lease; this is less than its client waits for the answer."""
MOST_UNTOLD = 1_000_000
"""How far a number may exceed the highest one while the store cannot be read. Leases are granted one by one, so a
number far above is invalid."""


class Fence:
    """Permits writes of the newest lease, and refuses writes of older leases permanently.

    ``newest`` reads the number of the newest lease from the store; it returns ``None`` if the store cannot be read, and
    then the highest known number decides. ``shut_out`` makes the store skip all lease numbers up to a number that was
    used but is not in the store. It returns the store's new newest number, or ``None`` if that fails.
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
            DeviceRefusedError: no number is given, or no lease of this rack has the number; nothing was sent.
        """
        if number is None:
            raise DeviceRefusedError(
                f"a write to rack {self._rack} had no lease number; nothing was sent",
                hint="only the change engine writes through a gateway: lumctl swap, fabric apply, device set",
            )
        self._begin(number)
        try:
            yield
        finally:
            with self._changed:
                self._at_work[number] -= 1
                self._at_work += Counter()  # drops zero counts
                self._changed.notify_all()

    def look(self, number: int | None) -> None:
        """Prepare a read under a lease's number: after this, no write of an older lease begins or is in transit.

        A read needs no lease: a read without a number, or with a number that is not in the store, does not wait.

        Raises:
            DeviceUnreachableError: a write of an older lease does not end.
        """
        if number is None:
            return
        # A number that is known needs no question to the store, so reads stay fast.
        newest = None if number <= self.highest else self._asked()
        with self._changed:
            if number > self.highest:
                if not self._may_be(number, newest):
                    return
                self._raise_to(number, newest)
            # A read under an older number does not wait: its holder has lost the lease.
            if number == self.highest and not self._changed.wait_for(lambda: not self._older(number), LOOKS_WITHIN_S):
                raise DeviceUnreachableError(
                    f"a write under an older lease of rack {self._rack} than {number} is still being sent; nothing "
                    "was read",
                    hint="it ends within the device's own time limit; then say it again",
                )

    def settle(self) -> None:
        """Make sure that the store contains every number that was used for a write."""
        if not self._is_settled:
            self._asked()

    def end(self, within_s: float = ENDS_WITHIN_S) -> bool:
        """Refuse all further writes and wait for writes in transit; return whether all have ended."""
        with self._changed:
            self._ended = True
            return self._changed.wait_for(lambda: not self._at_work, within_s)

    def _begin(self, number: int) -> None:
        while True:
            # The store may be slow, so ask it without the lock; others may raise the highest number meanwhile.
            newest = self._asked()
            with self._changed:
                self._see(number, newest)
                if not self._older(number):
                    self._at_work[number] += 1
                    return
                # Without a limit: each write ends within its driver's time limits, and writing() notifies then.
                self._changed.wait()
            # A newer lease may have been granted during the wait.

    def _older(self, number: int) -> bool:
        """Whether a write of an older lease is being sent."""
        return any(older < number for older in self._at_work)

    def _asked(self) -> int | None:
        """The store's newest lease number. If it is lower than the highest number seen, raise it first."""
        highest = self.highest  # read first: the store knows any lease that it grants meanwhile
        newest = self._newest()
        if newest is not None and newest < highest and (above := self._shut_out(highest)) is not None:
            newest = above
        if newest is not None and newest >= self.highest:
            self._is_settled = True
        return newest

    def _may_be(self, number: int, newest: int | None) -> bool:
        """Whether a lease can have this number, according to the store or, if unreadable, to the highest number."""
        return 0 < number <= (min(self.highest + MOST_UNTOLD, MOST) if newest is None else newest)

    def _raise_to(self, number: int, newest: int | None) -> None:
        if number > self.highest:
            self._is_settled = newest is not None and number <= newest
            self._highest.raise_to(number)

    def _see(self, number: int, newest: int | None) -> None:
        if self._ended:
            raise DeviceRefusedError(f"the gateway of rack {self._rack} is ending; nothing was sent")
        if not self._may_be(number, newest):
            known = f"is not in the gateway's store, whose newest lease is {newest}"
            if newest is None:
                known = f"is far above {self.highest}, the highest known one, and the store cannot be read"
            raise DeviceRefusedError(
                f"lease {number} of rack {self._rack} {known}; nothing was sent",
                hint="engine and gateway must use one store: the rack's `store:`, or $LUMCTL_STATE",
            )
        highest = max(self.highest, newest or 0)
        # Even if this write is refused: from now on the newer lease shuts out the older ones.
        self._raise_to(max(number, highest), newest)
        if number < highest:
            raise self._stale(number, highest, newest)

    def _stale(self, number: int, highest: int, newest: int | None) -> StaleFenceError:
        if newest is not None and newest < highest:
            return StaleFenceError(
                f"lease {number} of rack {self._rack} is older than {highest}, which was seen before; the store "
                "contains no newer lease and cannot record it; nothing was sent",
                hint="the gateway must be able to write to its store: see what it says; then say it again",
            )
        return StaleFenceError(
            f"lease {number} of rack {self._rack} was followed by {highest}: its holder may no longer write; nothing "
            "was sent"
        )
