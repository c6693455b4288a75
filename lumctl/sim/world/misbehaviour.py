"""How a simulated device misbehaves now. The twin of every protocol asks this before it acts and before it answers.

A twin gets ``conduct``, a callable that returns a :class:`Misbehaviour`: ``partial(world.misbehaviour, device)`` in a
simulator, or ``Misbehaviour`` itself if the twin runs alone and is healthy. The twin calls it for every request:

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

- ``down``: nothing answers. ``Simulator`` shuts the service (``SimulatedService.shut``) when the fault is injected, and
  opens it when the fault is cleared. A twin that finds ``down`` set during a session disconnects.
- Only answers to requests are delayed or cut off. What a device sends by itself after a client connects (a greeting, an
  SSH banner, a NETCONF hello, the login) is complete and in time. So the client sends its request, and the outcome of
  the request is in doubt.
- A slow device acts at once and answers late. A device that cuts its answers has acted as usual.
- A change is what one request, or the commit that ends a transaction, would write. Its parts are in the order of the
  protocol. If their number is odd, the first half is the larger one. So a device with ``half`` always makes some of the
  change: it makes a change of one part completely, and reports an error.
- ``commit_s`` is handled by the world: a change is half made when it is answered, and complete ``commit_s`` later.
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

    ``delay_s`` is the delay before each answer; ``commit_s`` is how long a change continues after its answer.
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
        """The device's error for a write, as text; each protocol puts it into its own form."""
        return "no change is accepted now" if self.refuses else "stopped in the middle of the change"

    def taken(self, parts: Iterable[Part]) -> tuple[Part, ...]:
        """The parts of a change that the device really makes."""
        every = tuple(parts)
        if self.refuses or self.lying:
            return ()
        return every[: (len(every) + 1) // 2] if self.half else every

    def shortened(self, answer: bytes) -> bytes:
        """The part of an answer that is sent: all of it, or its first half, which ends within a line."""
        return answer[: len(answer.rstrip()) // 2] if self.cuts else answer


def misbehaviour_of(faults: Faults, device: str) -> Misbehaviour:
    """The misbehaviour of a device, from its present faults."""
    return Misbehaviour(
        down=faults.has(device, FaultKind.DEVICE_DOWN) or faults.has(device, FaultKind.MESH_DOWN),
        lying=faults.has(device, FaultKind.DEVICE_LYING) or faults.has(device, FaultKind.MESH_LYING),
        refuses=faults.has(device, FaultKind.DEVICE_REFUSE),
        half=faults.has(device, FaultKind.DEVICE_HALF),
        cuts=faults.has(device, FaultKind.DEVICE_CUT),
        delay_s=faults.value(device, FaultKind.DEVICE_SLOW) or 0.0,
        commit_s=faults.value(device, FaultKind.SLOW_COMMIT) or 0.0,
    )
