"""What a worker is told by the agent that starts it, as variables of its environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lumctl.errors import UsageError

SOCKET = "LUMCTL_JOB_SOCKET"


@dataclass(frozen=True, slots=True)
class Environment:
    """Who this worker is. ``address`` is where its servers listen, ``token`` what all workers of the job know."""

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
        """What the agent has told; ``None`` in a process that no agent has started.

        Raises:
            UsageError: a part of it is missing or makes no sense.
        """
        if not variables.get(SOCKET):
            return None
        try:
            return cls(
                job=variables["LUMCTL_JOB"],
                worker=variables["LUMCTL_JOB_WORKER"],
                socket=Path(variables[SOCKET]),
                address=variables.get("LUMCTL_JOB_ADDRESS", "127.0.0.1"),
                folder=Path(variables["LUMCTL_JOB_FOLDER"]),
                beat_s=float(variables.get("LUMCTL_JOB_BEAT_S", "0.5")),
                token=variables["LUMCTL_JOB_TOKEN"],
                lifeline=Path(variables["LUMCTL_JOB_LIFELINE"]) if variables.get("LUMCTL_JOB_LIFELINE") else None,
            )
        except (KeyError, ValueError) as error:
            raise UsageError(
                f"{SOCKET} is set, but another variable of a worker is not as it must be: {error}",
                hint=f"workers are started by `lumctl job run`; without one, unset {SOCKET}",
            ) from None
