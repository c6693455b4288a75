"""Checks of the installed kinds of job control: whether each loads, and whether its users' programs are found."""

import shutil
from collections.abc import Iterator

from lumctl.devices.doctor import DoctorFinding, lacking
from lumctl.errors import UsageError
from lumctl.inventory.job_kinds import API, kinds
from lumctl.inventory.model import Inventory
from lumctl.jobs.control import load, programs_of
from lumctl.offers import Offer

__all__ = ["examine", "kinds"]


def examine(offer: Offer, inventory: Inventory | None) -> Iterator[DoctorFinding]:
    """All findings about a kind that need no job."""
    try:
        load(offer.name)
    except UsageError as error:
        yield DoctorFinding(offer.name, ok=False, text=error.message, advice=error.hint or "")
        yield from lacking(offer)
        return
    yield DoctorFinding(offer.name, ok=True, text=f"a kind of job control, API {API.version}")
    yield from lacking(offer)
    if inventory is not None:
        yield from _used(offer.name, inventory)


def _used(name: str, inventory: Inventory) -> Iterator[DoctorFinding]:
    for job in inventory.jobs.values():
        if job.hook is None or job.hook.kind != name:
            continue
        try:
            programs = programs_of(job.hook)
        except UsageError as error:
            yield DoctorFinding(
                name, ok=False, text=f"used by job {job.name}: {error.message}", advice=error.hint or ""
            )
            continue
        absent = sorted({argv[0] for argv in programs.values() if shutil.which(argv[0]) is None})
        if absent:
            text = f"used by job {job.name}, and {', '.join(absent)} cannot be run here"
            yield DoctorFinding(
                name, ok=False, text=text, advice="install it, or see `hook` of the job in the inventory"
            )
        else:
            yield DoctorFinding(name, ok=True, text=f"used by job {job.name}")
