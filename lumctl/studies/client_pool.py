"""Jobs that train in rounds, the clients of their pool, and which jobs may get which client."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

OVER_SELECTION = 1.2


class ClientChoice(StrEnum):
    """Which jobs may get a client. Where it says a job, all of one tier are meant if there are parts for tiers."""

    SHARED = "shared"
    """Any job that it can serve."""
    PARTITION = "partition"
    """One job, always the same. The job that has the rarest clients gets its quota first; the rest are spread."""
    QUOTA = "quota"
    """As before, but without the rest: no job gets more than its quota."""
    SHARE = "share"
    """One job, always the same, drawn in proportion to the quotas; also one that it cannot serve."""
    CHANCE = "chance"
    """One job, drawn again for each attempt; also one that it cannot serve."""


@dataclass(frozen=True, slots=True)
class RoundJob:
    """A job: the results that each of its rounds needs, the least tier of its clients, its clients if partitioned.

    ``rounds`` is how many it has if not as many as the others.
    """

    needs: int
    tier: int
    quota: int
    submit_s: float = 0.0
    rounds: int | None = None

    @property
    def binds(self) -> int:
        """How many clients a round binds."""
        return int(OVER_SELECTION * self.needs)


@dataclass(frozen=True, slots=True)
class PoolClient:
    """A client: the classes of jobs that it can serve nest, so a tier says which; 0 is none.

    ``work_s`` are the seconds for which it trains and transfers, ``other_s`` those that it spends besides to get in
    touch with its job.
    """

    tier: int
    work_s: float
    other_s: float = 0.0


def partitioned(
    jobs: Sequence[RoundJob], clients: Sequence[PoolClient], choice: ClientChoice, rng: Random
) -> list[int | None]:
    """The only job of each client in a static partition; ``None`` if no job gets it.

    :data:`ClientChoice.PARTITION` is what the repository does.
    """
    left = [job.quota for job in jobs]
    found: list[int | None] = []
    for client in clients:
        able = [number for number, job in enumerate(jobs) if job.tier <= client.tier]
        if choice is ClientChoice.SHARE:
            drawn = rng.choices(range(len(jobs)), left)[0]
            found.append(drawn if drawn in able else None)
            continue
        short = [number for number in able if left[number]]
        if short:
            left[short[-1]] -= 1
        spread = rng.choice(able) if able and not short and choice is ClientChoice.PARTITION else None
        found.append(short[-1] if short else spread)
    return found
