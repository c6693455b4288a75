"""What is asked of ``slice plan``: shapes that would do, the names of the jobs, and which accelerators may be used."""

import re
from dataclasses import dataclass, replace
from itertools import chain

from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.folded_names import NAME
from lumctl.inventory.model import Inventory
from lumctl.inventory.problems import nearest, require_known
from lumctl.inventory.torus import RackTorus
from lumctl.slices.allocator import shapes_of
from lumctl.slices.torus import Extents

_SHAPE = re.compile(r"[0-9]{1,6}(x[0-9]{1,6}){0,2}")
_MOST = 100_000


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """Slices of one of these ``shapes``, the best first, one for each of the ``jobs``; ``hosts``: only on these.

    ``redirect``: ports of dimensions in which a slice has no neighbour serve the others.
    """

    shapes: tuple[Extents, ...]
    jobs: tuple[str, ...]
    racks: tuple[str, ...]
    model: str | None = None
    memory_gib: float = 0.0
    hosts: tuple[str, ...] = ()
    redirect: bool = False

    @property
    def accelerators(self) -> int:
        """How many accelerators one slice needs."""
        x, y, z = self.shapes[0]
        return x * y * z


def read_shapes(text: str) -> tuple[Extents, ...]:
    """The shapes that ``4x4x2`` or a number of accelerators means, the best one first.

    Raises:
        UsageError: the text is neither.
    """
    parts = [int(part) for part in text.split("x")] if _SHAPE.fullmatch(text) else []
    if not parts or min(parts) < 1:
        raise UsageError(f"{text!r} is not a shape of a slice", hint="examples: 4x4x2, or 32 for any shape of 32")
    if len(parts) == 1:
        if parts[0] > _MOST:
            raise UsageError(f"{parts[0]} accelerators are more than the {_MOST} of the largest torus")
        return shapes_of(parts[0])
    x, y, z = (*parts, 1)[:3]
    return ((x, y, z),)


def require_request(inventory: Inventory, request: SliceRequest) -> SliceRequest:
    """The request with the racks that can meet it.

    Raises:
        UsageError: a name cannot be a job's or is taken, a host or a model is not known, no rack has a torus, or the
            slice is larger than each of them.
    """
    for job in request.jobs:
        _require_free_name(inventory, job)
    require_known("host", request.hosts, inventory.hosts)
    models = {accelerator.model for accelerator in inventory.accelerators.values()}
    if request.model is not None and request.model not in models:
        near = nearest(request.model, models)
        known = f"did you mean {near!r}?" if near else f"the models are: {', '.join(sorted(models))}"
        raise UsageError(f"no accelerator is a {request.model!r}", hint=known)
    racks = tori_of(inventory)
    wanted = {inventory.hosts[host].rack for host in request.hosts}
    here = tuple(name for name in racks if name in wanted or not wanted)
    if not here:
        raise UsageError(f"rack {min(wanted)} has no `torus:`", hint=f"racks that have one: {', '.join(racks)}")
    largest = max(here, key=lambda name: len(racks[name].hosts) * racks[name].server_size)
    most = len(racks[largest].hosts) * racks[largest].server_size
    if request.accelerators > most:
        raise UsageError(f"a slice of {request.accelerators} accelerators is larger than {largest}, which has {most}")
    return replace(request, racks=here)


def tori_of(inventory: Inventory) -> dict[str, RackTorus]:
    """The torus of each rack that has one.

    Raises:
        UsageError: no rack has one.
    """
    racks = {name: rack.torus for name, rack in inventory.racks.items() if rack.torus is not None}
    if not racks:
        raise UsageError(
            f"no rack of {inventory.path} has a `torus:`", hint="slices are placed on a torus: lumctl-inventory(5)"
        )
    return racks


def _require_free_name(inventory: Inventory, job: str) -> None:
    if not NAME.fullmatch(job):
        raise UsageError(f"{job!r} cannot be a name, expected letters, digits, '-', '_' and '.'")
    if job in inventory.jobs and inventory.jobs[job].is_slice:
        raise RefusedError(f"there is a slice {job} already", hint=f"see: lumctl slice show {job}")
    taken = chain(
        *(inventory.jobs, inventory.racks, inventory.hosts, inventory.accelerators, inventory.devices),
        *(inventory.fibres, inventory.transponders),
    )
    if job in set(taken):
        raise UsageError(f"the name {job} is taken in {inventory.path}", hint="choose another name for --job")
