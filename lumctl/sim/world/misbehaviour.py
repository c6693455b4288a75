"""How a simulated device misbehaves now: what the twin of every protocol asks before it acts and before it answers.

A twin is handed ``conduct``, a callable that gives a :class:`Misbehaviour` (``partial(world.misbehaviour, device)`` in
a simulator, ``Misbehaviour`` itself where a twin stands alone and is well), and asks it again for every request:

    conduct = self._conduct()
    if conduct.says_no and is_a_write:                 # device-refuse, device-half
        self._apply(conduct.taken(changes))            # nothing, or the first half
        answer = my_protocols_error(conduct.complaint)
    elif is_a_write:
        self._apply(conduct.taken(changes))            # everything, or nothing (device-lying)
        answer = my_protocols_yes()
    self._ended.wait(conduct.delay_s)                  # device-slow: it has acted already; never time.sleep
    connection.sendall(conduct.shortened(answer))      # device-cut
    if conduct.cuts:
        hang_up()

Rules that hold for every protocol:

- ``down``: nothing answers. Its service is shut (``Service.shut``) when the fault comes and opened when it goes, in
  ``Simulator``'s reaction to changed faults; a twin that finds it set in mid-session hangs up.
- Slow, and cut off: only answers to requests are. What a device says by itself when somebody connects (a greeting, an
  SSH banner, a NETCONF hello, the log-in) is whole and in time, so that the request is sent and its outcome in doubt.
- A slow device acts at once and answers late. A device that cuts its answers has acted as usual.
- A change is whatever one request, or the commit that ends a transaction, would write; its parts are in the order in
  which the protocol gives them. The first half of an odd number is the larger one, so that a device which does
  things by half has always done something: a change of one part is made, and denied.
- ``commit_s`` is the world's own doing: a change is half made when it is answered, and whole so many seconds later.
- Reads and the connection itself stay truthful under ``lying``, ``refuses`` and ``half``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from lumctl.sim.world.faults import FaultKind, Faults

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """The misbehaviour of a device; by default none.

    ``delay_s`` is seconds before each answer, ``commit_s`` seconds that a change takes after its answer.
    """

    down: bool = False
    lying: bool = False
    refuses: bool = False
    half: bool = False
    cuts: bool = False
    delay_s: float = 0.0
    commit_s: float = 0.0

    @property
    def says_no(self) -> bool:
        """Whether a write is answered with the protocol's error."""
        return self.refuses or self.half

    @property
    def complaint(self) -> str:
        """The device's objection to a write, for the protocol to put into its own form."""
        return "no change is accepted now" if self.refuses else "stopped in the middle of the change"

    def taken(self, parts: Iterable[Part]) -> tuple[Part, ...]:
        """The parts of a change that the device really makes."""
        every = tuple(parts)
        if self.refuses or self.lying:
            return ()
        return every[: (len(every) + 1) // 2] if self.half else every

    def shortened(self, answer: bytes) -> bytes:
        """What of an answer goes out: all, or its first half, which ends in mid-line."""
        return answer[: len(answer.rstrip()) // 2] if self.cuts else answer


def misbehaviour_of(faults: Faults, device: str) -> Misbehaviour:
    """How a device misbehaves by its present faults."""
    return Misbehaviour(
        down=faults.has(device, FaultKind.DEVICE_DOWN) or faults.has(device, FaultKind.MESH_DOWN),
        lying=faults.has(device, FaultKind.DEVICE_LYING) or faults.has(device, FaultKind.MESH_LYING),
        refuses=faults.has(device, FaultKind.DEVICE_REFUSE),
        half=faults.has(device, FaultKind.DEVICE_HALF),
        cuts=faults.has(device, FaultKind.DEVICE_CUT),
        delay_s=faults.value(device, FaultKind.DEVICE_SLOW) or 0.0,
        commit_s=faults.value(device, FaultKind.SLOW_COMMIT) or 0.0,
    )
