"""What studies use of an inventory's rack in place of the published one: values of their parameters."""

from collections import Counter
from typing import TYPE_CHECKING

from lumctl.errors import UsageError
from lumctl.inventory.geometry import Shape
from lumctl.inventory.model import DeviceKind
from lumctl.studies.study import StudySettings
from lumctl.studies.torus_cluster import RACK, SERVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lumctl.inventory.model import Device, Inventory
    from lumctl.inventory.torus import RackTorus

_FEWEST_RANKS, _FEWEST_OF_HOST = 3, 2


def all_accelerators(inventory: "Inventory") -> StudySettings:
    """The accelerators of all racks, and the most of one host."""
    return {"accelerators": (len(inventory.accelerators),), "per_server": (max(_sizes_of_hosts(inventory), default=1),)}


def sizes_of_jobs(inventory: "Inventory") -> StudySettings:
    """The numbers of ranks of the jobs.

    Raises:
        UsageError: no job has three ranks or more.
    """
    sizes = sorted({len(job.ranks) for job in inventory.jobs.values() if len(job.ranks) >= _FEWEST_RANKS})
    if not sizes:
        raise UsageError(f"no job in {inventory.path} has {_FEWEST_RANKS} ranks or more")
    return {"ranks": tuple(sizes)}


def largest_mesh(inventory: "Inventory") -> StudySettings:
    """Columns and rows of the largest mesh, and how many of its ports a lane or a fibre uses.

    Raises:
        UsageError: there is no mesh with the shape of the published one, or fewer than two of its ports are used.
    """
    meshes = [
        (each.geometry.columns * each.geometry.rows, each.id, each.geometry)
        for each in _devices(inventory, DeviceKind.MESH)
        if each.geometry is not None and each.geometry.shape is Shape.PARALLELOGRAM
    ]
    if not meshes:
        raise UsageError(f"no mesh in {inventory.path} is a parallelogram, as the meshes of study matchings are")
    _, name, geometry = max(meshes, key=lambda each: each[0])
    used = {at for each in inventory.transponders.values() if each.lane.device == name for at in each.lane.ports}
    used |= {end.port for end in inventory.fibre_at if end.device == name}
    return {"columns": (geometry.columns,), "rows": (geometry.rows,), "ports": (len(used),)}


def rails_of_hosts(inventory: "Inventory") -> StudySettings:
    """Accelerators, those of each host, and the ports of the largest switch if there is one.

    Raises:
        UsageError: hosts with accelerators have different numbers of them, or one each.
    """
    sizes = _sizes_of_hosts(inventory)
    if len(sizes) != 1 or sizes[0] < _FEWEST_OF_HOST:
        raise UsageError(
            f"rails need hosts with equally many accelerators, {_FEWEST_OF_HOST} or more; "
            f"those in {inventory.path} have {' or '.join(map(str, sizes)) or 'none'}"
        )
    # Where light enters at some ports and leaves at the others, two of them are one for both directions.
    radix = max((min(each.input_count, each.port_count) for each in _devices(inventory, DeviceKind.SWITCH)), default=0)
    found = {"gpus": (len(inventory.accelerators),), "domain": (sizes[0],)}
    return {**found, "radix": (radix,)} if radix else found


def port_rates(inventory: "Inventory") -> StudySettings:
    """The rates of the lanes, in GB/s.

    Raises:
        UsageError: no transponder states its rate.
    """
    gbit_s = {each.rate_gb_s for each in inventory.transponders.values() if each.rate_gb_s is not None}
    if not gbit_s:
        raise UsageError(f"no transponder in {inventory.path} states its rate", hint="add rate_gb_s, in Gbit/s")
    return {"port_gb_s": tuple(each / 8 for each in sorted(gbit_s))}


def torus_racks(inventory: "Inventory") -> StudySettings:
    """How many racks there are.

    Raises:
        UsageError: none is a torus, or one has another shape than the published one.
    """
    return {"racks": (len(_tori(inventory)),)}


def torus_fibres(inventory: "Inventory") -> StudySettings:
    """How many racks there are, and the circuits that fibres carry between two servers: the fewest of any two.

    Raises:
        UsageError: see :func:`torus_racks`.
    """
    tori = _tori(inventory)
    carried: dict[tuple[str, frozenset[int]], int] = {}
    for name, torus in tori.items():
        for edge in torus.edges:
            between = name, frozenset(edge.servers)
            carried[between] = carried.get(between, 0) + inventory.fibres[edge.fibre].capacity
    return {"racks": (len(tori),), "fibres": (min(carried.values()),)}


def _tori(inventory: "Inventory") -> "Mapping[str, RackTorus]":
    tori = {name: rack.torus for name, rack in inventory.racks.items() if rack.torus is not None}
    expected = f"{_by(RACK)} accelerators in servers of {_by(SERVER)}"
    if not tori:
        raise UsageError(f"no rack in {inventory.path} has a torus; the study has racks of {expected}")
    for name, torus in tori.items():
        if (torus.shape, torus.server) != (RACK, SERVER):
            found = f"{_by(torus.shape)} in servers of {_by(torus.server)}"
            raise UsageError(f"rack {name} is a torus of {found}; the study has racks of {expected}")
    return tori


def _sizes_of_hosts(inventory: "Inventory") -> list[int]:
    """How many accelerators hosts have that have any, each number once."""
    return sorted(set(Counter(each.host for each in inventory.accelerators.values()).values()))


def _devices(inventory: "Inventory", kind: DeviceKind) -> "list[Device]":
    return [each for each in inventory.devices.values() if each.kind is kind]


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
