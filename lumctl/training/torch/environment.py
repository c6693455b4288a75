"""What a worker knows of itself: what its agent told it by variables of its environment, and its rank."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lumctl.errors import UsageError
from lumctl.training.variables import ADDRESS, BEAT_S, FOLDER, JOB, LIFELINE, SOCKET, TOKEN, WORKER


@dataclass(frozen=True, slots=True)
class Environment:
    """This worker. ``address`` is where its servers listen, ``token`` the secret of the job's workers."""

    job: str
    worker: str
    socket: Path
    address: str
    folder: Path
    beat_s: float
    token: str = field(repr=False)
    lifeline: Path | None = None

    @classmethod
    def read(cls, variables: Mapping[str, str] = os.environ) -> "Environment | None":
        """Read the variables; ``None`` in a process that no agent started.

        Raises:
            UsageError: a variable is missing or invalid.
        """
        if not variables.get(SOCKET):
            return None
        try:
            return cls(
                job=variables[JOB],
                worker=variables[WORKER],
                socket=Path(variables[SOCKET]),
                address=variables.get(ADDRESS, "127.0.0.1"),
                folder=Path(variables[FOLDER]),
                beat_s=float(variables.get(BEAT_S, "0.5")),
                token=variables[TOKEN],
                lifeline=Path(variables[LIFELINE]) if variables.get(LIFELINE) else None,
            )
        except (KeyError, ValueError) as error:
            raise UsageError(
                f"{SOCKET} is set, but another variable of a worker is not as it must be: {error}",
                hint=f"workers are started by `lumctl job run`; without one, unset {SOCKET}",
            ) from None


@dataclass
class Membership:
    """The worker's rank in the group of a generation; ``joined``: it has had a rank."""

    rank: int = 0
    world: int = 1
    generation: int = 0
    joined: bool = False
    stopped: bool = False
    """No step follows."""
    cut_short: bool = False
    """It was told to end before all steps were done."""
