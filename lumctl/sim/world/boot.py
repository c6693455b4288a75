"""When a simulated host was booted, and the id that its kernel gave that boot."""

import random
import uuid
from dataclasses import dataclass

_DAY_S = 86_400.0
_YOUNGEST_DAYS, _OLDEST_DAYS = 2.0, 40.0


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot. ``at`` is in epoch seconds."""

    id: str
    at: float


def boot_of(host: str, *, seed: int, started_at: float) -> Boot:
    """The boot of a host in a simulator that was started at ``started_at``: days before it.

    Another start of the simulator is another boot, since counters and logs begin anew with it.
    """
    # Not cryptography: a boot that repeats with the seed is the point.
    chance = random.Random(f"{seed}/{host}/boot/{started_at}")  # noqa: S311
    at = started_at - chance.uniform(_YOUNGEST_DAYS, _OLDEST_DAYS) * _DAY_S
    return Boot(str(uuid.UUID(int=chance.getrandbits(128), version=4)), at)


def boot_at(host: str, *, seed: int, at: float) -> Boot:
    """A boot of a host in the midst of a simulation, at ``at``."""
    chance = random.Random(f"{seed}/{host}/boot at/{at}")  # noqa: S311 - as above
    return Boot(str(uuid.UUID(int=chance.getrandbits(128), version=4)), at)
