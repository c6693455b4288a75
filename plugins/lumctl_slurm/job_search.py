"""Which of Slurm's jobs is meant."""

import os
import re
from typing import TYPE_CHECKING

from lumctl.errors import RefusedError
from lumctl_slurm.cluster import Cluster, SlurmJob
from lumctl_slurm.settings import SlurmHookEntry

if TYPE_CHECKING:
    from pathlib import Path

_NUMBER = re.compile(r"[0-9]{1,10}")
_MOST_IN_FILE = 100
"""Characters of a file that holds a number: more is another file."""


def find(cluster: Cluster, settings: SlurmHookEntry, job: str, home: "Path") -> SlurmJob:
    """The one job that the inventory means: one that has not ended, else the newest of those that have.

    Raises:
        RefusedError: there is none, or several.
        SlurmError: Slurm does not tell.
    """
    number = _number(settings, job, home)
    name = settings.job or job
    if number is not None:
        found, what = cluster.jobs(f"--jobs={number}"), f"job {number}"
    else:
        whose = [f"--user={settings.user}"] if settings.user else []
        found = [each for each in cluster.jobs(f"--name={name}", *whose) if each.name == name]
        what = f"job named {name}" + (f" of user {settings.user}" if settings.user else "")
    live = [each for each in found if not each.ended]
    if len(live) > 1:
        numbers = ", ".join(f"{each.shown} of {each.user}" for each in live)
        raise RefusedError(f"Slurm has {len(live)} of {what}: {numbers}", hint="name its user, or its number: id_file")
    if not found:
        raise RefusedError(
            f"Slurm has no {what} in its queue",
            hint=f"see squeue --all, and `hook` of job {job} in the inventory; one that has ended is submitted again, "
            "held: sbatch --hold",
        )
    return live[0] if live else max(found, key=lambda each: int(each.id))


def _number(settings: SlurmHookEntry, job: str, home: "Path") -> str | None:
    if settings.id_variable is not None:
        place, text = f"variable {settings.id_variable}", os.environ.get(settings.id_variable, "")
    elif settings.id_file is not None:
        path = home / os.path.expanduser(settings.id_file)  # noqa: PTH111 - a folder that is not known stays as written
        place = str(path)
        try:
            with path.open(encoding="ascii", errors="replace") as file:
                text = file.read(_MOST_IN_FILE)
        except OSError as error:
            raise RefusedError(
                f"the number that Slurm gave job {job} cannot be read: {path}: {error.strerror}",
                hint="sbatch --parsable prints it: write that into the file",
            ) from error
    else:
        return None
    text = text.strip().partition(";")[0]  # sbatch --parsable adds the cluster's name
    if not _NUMBER.fullmatch(text):
        raise RefusedError(
            f"{place} does not hold the number that Slurm gave job {job}: found {text[:40]!r}",
            hint="sbatch --parsable prints it",
        )
    return text
