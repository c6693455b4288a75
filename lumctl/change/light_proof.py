"""The proof of light: each receiver is shown to hear the intended transmitter, never by power alone.

In bar and in cross state, every port of a mesh is paired with some other port, so a wrong circuit can still bring
light. The inventory declares for each transponder the methods that can prove its source. With LLDP, each transmitting
host announces a new, unique mark, and the receiver's neighbour table must show that mark with the transmitter's name.
An old neighbour entry proves nothing: it stays until its time to live expires, and its age counts from the last frame
that changed it.
"""

import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from lumctl.change.concurrency import all_of
from lumctl.devices.errors import DeviceError
from lumctl.devices.protocols import TransponderDriver
from lumctl.devices.registry import DeviceSet
from lumctl.errors import LumctlError
from lumctl.fleet.readings import Snapshot
from lumctl.health.identity import heard_transponder
from lumctl.inventory.model import Evidence, Inventory
from lumctl.inventory.wiring import Circuit

FIRST_PAUSE_S, POLL_S = 0.005, 0.05
"""The far end's table is polled, because no host reports a changed neighbour. The first polls follow quickly, because a
frame arrives at once; later ones are further apart."""
STANDING_S = 0.5
"""How long the proof of an existing circuit may take."""
SILENT_LOOKS = 2
"""How many reads a silent host must miss: after one missed read it may only be slow, or have lost its connection."""
Table = list[tuple[str | None, str | None]]
DROP_DB = 10.0
"""A drop of the received power by this much counts as dark: far more than noise or crosstalk causes."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One receiver that was shown to hear its intended transmitter."""

    circuit: str
    receiver: str
    transmitter: str
    evidence: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ExpectedSource:
    """A receiver, the transmitter that it must hear, and their circuit."""

    circuit: str
    receiver: str
    transmitter: str


class NotProvedError(LumctlError):
    """Some receivers of these circuits were not shown to hear their intended transmitter."""

    def __init__(self, message: str, circuits: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.circuits = frozenset(circuits)


class LldpReader(Protocol):
    """The part of the fleet that the proof needs."""

    def collect(self, hosts: Collection[str] | None = None, probes: Collection[str] | None = None) -> Snapshot:
        """Read some probes of some hosts."""
        ...


class LightProof:
    """Proves circuits of one inventory through its hosts and transponders."""

    def __init__(
        self,
        inventory: Inventory,
        fleet: LldpReader,
        devices: DeviceSet,
        *,
        now: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] | None = None,
        token: Callable[[], str] = lambda: secrets.token_hex(3),
    ) -> None:
        self._inventory = inventory
        self._fleet = fleet
        self._devices = devices
        self._now = now
        self._clock = clock
        self._pause = pause or threading.Event().wait
        self._token = token

    def sound(self, circuits: Iterable[Circuit]) -> dict[str, str]:
        """The receivers that are proved to hear their intended transmitter now: receiver -> transmitter.

        A receiver that is not proved within ``STANDING_S`` is omitted: an existing link proves itself at once.
        """
        proofs, *_ = self._try_by_lldp([w for w in wants_of(circuits) if self._by_lldp(w)], STANDING_S)
        return {proof.receiver: proof.transmitter for proof in proofs}

    def recheck(self, circuits: Iterable[Circuit]) -> tuple[dict[str, str], dict[str, str]]:
        """Look once more at circuits that may carry traffic: which were not proved within ``STANDING_S``, and why.

        Then which of those are certainly wrong, and why: a receiver hears another transmitter now. Both by the ids of
        circuits. Circuits that only a blink could prove are omitted.
        """
        wants = [want for want in wants_of(circuits) if self._by_lldp(want)]
        _, pending, tables, marks = self._try_by_lldp(wants, STANDING_S)
        heard = {w: next((name for name, said in tables[w.receiver] if said in marks), None) for w in pending}
        wrong = {w.circuit: _missed(w, name) for w, name in heard.items() if name not in {None, w.transmitter}}
        missing = {w.circuit: _missed(w, next((name for name, _ in tables[w.receiver]), None)) for w in pending}
        return missing, wrong

    def heard(self, receivers: Iterable[str], expected: Iterable[Circuit] = ()) -> dict[str, str]:
        """Which transmitter of the inventory each receiver hears now: receiver -> transmitter.

        Every host announces a new mark, because an old entry in a neighbour table proves nothing. Receivers that hear
        no transmitter, and those that cannot identify the transmitter, are omitted. Receivers of ``expected`` circuits
        get ``STANDING_S`` to answer.
        """
        lanes = self._inventory.transponders
        asked = [ExpectedSource("", name, name) for name in receivers if lanes[name].verify[0] is Evidence.LLDP]
        due = {want.receiver for want in wants_of(expected) if self._by_lldp(want)}
        # An old entry proves nothing, but it shows which receivers are worth waiting for.
        due |= {name for name, table in self._tables(asked).items() if any(known for known, _ in table)}
        found, marks = dict[str, str](), set[str]()
        started, pause_s = self._clock(), FIRST_PAUSE_S
        while due - found.keys():
            mark = self._new_mark()
            marks.add(mark)
            self._announce(asked, mark)
            for name, table in self._tables(asked).items():
                heard = next((known for known, said in table if known and said in marks), None)
                if heard is not None:
                    found[name] = heard
            if self._clock() - started > STANDING_S:
                break
            self._pause(pause_s)
            pause_s = min(2 * pause_s, POLL_S)
        return found

    def prove(
        self,
        circuits: Iterable[Circuit],
        *,
        kept: Iterable[Circuit] = (),
        sound: Mapping[str, str] | None = None,
        put_back: Collection[str] = (),
    ) -> list[Proof]:
        """Prove for every receiver that it hears its intended transmitter now.

        Of the ``kept`` circuits, which carry running jobs, only the receivers named in ``sound`` (with their
        transmitters) are proved again, and never by a blink. Such a receiver is skipped if its host, or the host of its
        transmitter, no longer answers: that host lost power for another reason and cannot be read. Two kinds are never
        skipped: a receiver that hears a mark of this proof from the wrong transmitter, because its light was misrouted;
        and receivers of circuits whose ids are in ``put_back``, because this change moved them.

        Raises:
            NotProvedError: some were not proved within the deadline; the message names the receivers and what they hear
                instead.
            BlinkError: a receiver's power did not follow its transmitter.
        """
        deadline_s = self._inventory.thresholds.light_deadline_s
        wants, telling = wants_of(circuits), sound or {}
        again = [w for w in wants_of(kept) if telling.get(w.receiver) == w.transmitter and w not in wants]
        # All circuits are proved together: a round of announcements and reads takes as long for one as for all.
        telling_now = [w for w in (*wants, *again) if self._by_lldp(w)]
        proofs, pending, tables, marks = self._try_by_lldp(telling_now, deadline_s)
        astray = [w for w in pending if any(said in marks for _, said in tables[w.receiver])]
        silent = self._silent([w for w in pending if w in again and w not in astray and w.circuit not in put_back])
        if missing := [w for w in pending if w not in silent]:
            raise NotProvedError(_complaint(missing, tables, deadline_s), {w.circuit for w in missing})
        return proofs + [self._prove_by_blink(w, deadline_s) for w in wants if not self._by_lldp(w)]

    def silent_hosts(self, circuits: Iterable[Circuit]) -> set[str]:
        """The hosts that do not answer and without which some circuits cannot be proved."""
        return self._silent_hosts(want for want in wants_of(circuits) if self._by_lldp(want))

    def relight(self, circuits: Iterable[Circuit]) -> None:
        """Switch on the transmitters that an interrupted blink may have left off, on hosts that answer."""
        for want in wants_of(circuits):
            if not self._by_lldp(want):
                with suppress(DeviceError):
                    self._devices.transponder(want.transmitter).set_transmit(True)

    def powers(self, circuits: Iterable[Circuit]) -> dict[str, float]:
        """Received power (dBm) of receivers that cannot identify their transmitter; unreadable ones are omitted."""
        found: dict[str, float] = {}
        for want in wants_of(circuits):
            if not self._by_lldp(want):
                with suppress(DeviceError):
                    found[want.receiver] = received_dbm(self._devices.transponder(want.receiver))
        return found

    def require_powers(self, circuits: Iterable[Circuit], before: Mapping[str, float]) -> None:
        """Require that the power at receivers that cannot identify their transmitter is not far below its earlier one.

        Raises:
            NotProvedError: a receiver lost more than ``DROP_DB``.
        """
        now = self.powers(c for c in circuits if any(receiver in before for receiver, _ in c.receivers))
        for receiver, power in now.items():
            if power < before.get(receiver, power) - DROP_DB:
                raise NotProvedError(
                    f"{receiver} receives {_power(power)}, {before[receiver]:.1f} dBm before the change"
                )

    def _try_by_lldp(
        self, wants: list[ExpectedSource], deadline_s: float
    ) -> tuple[list[Proof], list[ExpectedSource], dict[str, Table], set[str]]:
        """Prove as many as possible in time; return proofs, unproved sources, the last tables read, announced marks."""
        started, marks = self._clock(), set[str]()
        pending, proofs, tables = wants, list[Proof](), dict[str, Table]()
        pause_s = FIRST_PAUSE_S
        while pending:
            mark = self._new_mark()
            marks.add(mark)
            self._announce(pending, mark)
            tables = self._tables(pending)
            elapsed = self._clock() - started
            # Any mark of this proof counts: a frame may arrive a round after its announcement.
            proved = [w for w in pending if any((w.transmitter, said) in tables[w.receiver] for said in marks)]
            proofs += [Proof(w.circuit, w.receiver, w.transmitter, Evidence.LLDP, round(elapsed, 3)) for w in proved]
            pending = [w for w in pending if w not in proved]
            # Only after a look: a host that answers slowly is looked at once in any case.
            if elapsed > deadline_s:
                break
            if pending:
                self._pause(pause_s)
                pause_s = min(2 * pause_s, POLL_S)
        return proofs, pending, tables, marks

    def _silent(self, wants: list[ExpectedSource]) -> set[ExpectedSource]:
        """The expected sources for which the host of the receiver or of the transmitter does not answer."""
        gone = self._silent_hosts(wants)
        return {want for want in wants if self._hosts_of(want) & gone}

    def _silent_hosts(self, wants: Iterable[ExpectedSource]) -> set[str]:
        gone = set[str]().union(*map(self._hosts_of, wants))
        for _ in range(SILENT_LOOKS):
            seen = self._fleet.collect(gone, {"lldp"}).hosts if gone else {}
            gone = {host for host in gone if not seen[host].reachable}
        return gone

    def _hosts_of(self, want: ExpectedSource) -> set[str]:
        return {self._inventory.transponders[end].host for end in (want.receiver, want.transmitter)}

    def _prove_by_blink(self, want: ExpectedSource, deadline_s: float) -> Proof:
        started = self._clock()
        blink(
            self._devices.transponder(want.transmitter),
            self._devices.transponder(want.receiver),
            name=f"{want.receiver} from {want.transmitter}",
            deadline_s=deadline_s,
            clock=self._clock,
            pause=self._pause,
        )
        elapsed = round(self._clock() - started, 3)
        return Proof(want.circuit, want.receiver, want.transmitter, Evidence.BLINK, elapsed)

    def _new_mark(self) -> str:
        # 12 and 6 digits: a mark must be whole bytes.
        return f"{int(self._now() * 1000):012x}{self._token()}"

    def _announce(self, wants: list[ExpectedSource], mark: str) -> None:
        """Make each transmitting host announce a mark; a failure shows as silence at the far end."""
        # TransponderDriver.announce speaks for all lanes of a host: a call for each lane would cost a command each.
        by_host = {self._inventory.transponders[w.transmitter].host: w.transmitter for w in wants}

        def announce(transponder: str) -> None:
            with suppress(DeviceError):
                self._devices.transponder(transponder).announce(mark)

        all_of([partial(announce, transponder) for transponder in by_host.values()], most=len(by_host))

    def _tables(self, wants: list[ExpectedSource]) -> dict[str, Table]:
        """The neighbour table of each receiver: (transponder heard or ``None``, its mark), freshest first."""
        if not wants:
            return {}
        receivers = {w.receiver: self._inventory.transponders[w.receiver] for w in wants}
        snapshot = self._fleet.collect({r.host for r in receivers.values()}, {"lldp"})
        return {
            name: [
                (heard_transponder(self._inventory, neighbour), neighbour.mark)
                for neighbour in snapshot.hosts[receiver.host].neighbours.get(receiver.interface, ())
            ]
            for name, receiver in receivers.items()
        }

    def _by_lldp(self, want: ExpectedSource) -> bool:
        return self._inventory.transponders[want.receiver].verify[0] is Evidence.LLDP


def wants_of(circuits: Iterable[Circuit]) -> list[ExpectedSource]:
    """Every receiver of some circuits with its intended transmitter."""
    return [ExpectedSource(c.id, receiver, transmitter) for c in circuits for receiver, transmitter in c.receivers]


def _complaint(pending: list[ExpectedSource], tables: Mapping[str, Table], deadline_s: float) -> str:
    heard = {w.receiver: next((name for name, _ in tables[w.receiver]), None) for w in pending}  # newest first
    named = [_missed(want, heard[want.receiver]) for want in pending]
    shown = "; ".join(named[:3]) + (f"; and {len(named) - 3} more" if len(named) > 3 else "")  # noqa: PLR2004
    return f"light was not verified within {deadline_s:.1f} s: {shown}"


def _missed(want: ExpectedSource, heard: str | None) -> str:
    if heard == want.transmitter:  # the entry is old: the mark beside it is none of this proof
        return f"{want.receiver} received no new announcement from {want.transmitter}"
    return f"{want.receiver} hears {heard or 'no transmitter'} instead of {want.transmitter}"


class BlinkError(LumctlError):
    """The receiver's power did not follow the transmitter's blink."""


def blink(
    transmitter: TransponderDriver,
    receiver: TransponderDriver,
    *,
    name: str,
    deadline_s: float,
    clock: Callable[[], float],
    pause: Callable[[float], object],
) -> None:
    """Switch the transmitter off and on; never used on a circuit that carries a running job.

    It is switched on first, because an interrupted blink may have left it off.

    Raises:
        BlinkError: the receiver was dark from the start, or did not follow within the deadline.
    """
    transmitter.set_transmit(True)
    _until(lambda: received_dbm(receiver) > float("-inf"), f"{name} is dark", deadline_s, clock, pause)
    bright = received_dbm(receiver)
    transmitter.set_transmit(False)
    try:
        _until(lambda: received_dbm(receiver) < bright - DROP_DB, f"{name} did not go dark", deadline_s, clock, pause)
    finally:
        transmitter.set_transmit(True)
    _until(
        lambda: received_dbm(receiver) > bright - DROP_DB / 2,
        f"{name} did not light up again",
        deadline_s,
        clock,
        pause,
    )


def received_dbm(receiver: TransponderDriver) -> float:
    """Received power in dBm; minus infinity if there is no light or no reading."""
    power = receiver.read_optics().rx_power_dbm
    return float("-inf") if power is None else power


def _until(
    holds: Callable[[], bool],
    complaint: str,
    deadline_s: float,
    clock: Callable[[], float],
    pause: Callable[[float], object],
) -> None:
    started = clock()
    while not holds():
        if clock() - started > deadline_s:
            raise BlinkError(f"light was not verified by blinking: {complaint} within {deadline_s:.1f} s")
        pause(POLL_S)


def _power(dbm: float) -> str:
    return "no light" if dbm == float("-inf") else f"{dbm:.1f} dBm"
