"""The rack that ``lumctl inventory init`` writes: which GPUs are ranks and spares, on which mesh, at which ports."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from lumctl.cli.fabric_mesh import names_file
from lumctl.cli.init_answers import NO_SPARES, InitAnswers, names_in, require_address
from lumctl.errors import UsageError
from lumctl.inventory.devices import is_address
from lumctl.inventory.folded_names import fold
from lumctl.inventory.new_inventory import NewAccelerator, NewHost, NewInventory, NewMesh
from lumctl.printable import counted

if TYPE_CHECKING:
    from lumctl.cli.host_survey import FoundHost
    from lumctl.fabric.geometry import Mesh
    from lumctl.fabric.lane_ports import LaneLayout

MODEL, MEMORY_GIB = "NVIDIA H100 80GB HBM3", 80
"""The GPUs of a rack about which nothing is known."""
DEFAULT_JOB = "train"
_TX_POWER_DBM, _SENSITIVITY_DBM = 2.0, -15.8
"""The inventory's defaults for a transponder without its own values."""
MESH_PORT = 65432


@dataclass
class NewRack:
    """The rack to be written: the GPUs of each host, the number of meshes, and which accelerators are spares."""

    names: list[str]
    gpus: dict[str, int]
    meshes: int
    spares: frozenset[str] = frozenset()
    found: "Mapping[str, FoundHost]" = field(default_factory=dict)

    @property
    def most_gpus(self) -> int:
        """The maximum number of GPUs in a host."""
        return max(self.gpus.values())

    def mesh_of(self, number: int) -> int:
        """The mesh of the GPUs with this number on their host; meshes get equal ranges of numbers, in order."""
        return number * self.meshes // self.most_gpus

    def mesh_id(self, mesh: int) -> str:
        """The name of a mesh."""
        return "mesh" if self.meshes == 1 else f"rail{mesh}"

    def by_mesh(self) -> list[list[str]]:
        """The accelerators on each mesh, host by host."""
        meshes: list[list[str]] = [[] for _ in range(self.meshes)]
        place = [meshes[self.mesh_of(number)] for number in range(self.most_gpus)]
        for name in self.names:
            for number in range(self.gpus[name]):
                place[number].append(accelerator_id(name, number))
        return meshes


def accelerator_id(host: str, number: int) -> str:
    """The name of an accelerator."""
    return f"{host}-gpu{number}"


def spares_in(text: str | None, rack: NewRack, what: str = "--spares") -> frozenset[str]:
    """The accelerators that are spares: of the last host, unless others are given.

    Raises:
        UsageError: names are unknown; the error has all of them.
    """
    if text is None:
        text = rack.names[-1] if len(rack.names) > 1 else NO_SPARES
    every = {accelerator_id(name, number) for name in rack.names for number in range(rack.gpus[name])}
    spares: set[str] = set()
    unknown: list[str] = []
    for name in [] if text == NO_SPARES else names_in(text, what):
        if name in rack.gpus:
            spares |= {accelerator_id(name, number) for number in range(rack.gpus[name])}
        elif name in every:
            spares.add(name)
        else:
            unknown.append(name)
    if unknown:
        last = rack.names[-1]
        verdict = "is neither a host nor an accelerator" if len(unknown) == 1 else "are neither hosts nor accelerators"
        raise UsageError(
            f"{what}: {', '.join(map(repr, fold(unknown)))} {verdict}",
            hint=f"such as {last}, {last}-gpu0 or {NO_SPARES}",
        )
    return frozenset(spares)


def port_layouts(
    rack: NewRack, mesh: "Mesh", limit_s: float, seed: int, tell: Callable[[str], None]
) -> "list[tuple[list[str], list[str], LaneLayout]]":
    """For each mesh its ranks, spares and their ports. Meshes with equal numbers of both get the same ports."""
    from lumctl.fabric.lane_ports import choose_ports

    known: dict[tuple[int, int], LaneLayout] = {}
    layouts = []
    for here in rack.by_mesh():
        ranks, spares = [a for a in here if a not in rack.spares], [a for a in here if a in rack.spares]
        size = len(ranks), len(spares)
        if size not in known:
            known[size] = choose_ports(
                mesh,
                *size,
                rng=Random(seed),  # noqa: S311 - no secret
                # With more loss a receiver would get less light than it needs.
                most_loss_db=_TX_POWER_DBM - _SENSITIVITY_DBM,
                limit_s=limit_s,
                tell=lambda reached: tell(f"choosing ports of {mesh.name}: {reached}"),
            )
        layouts.append((ranks, spares, known[size]))
    return layouts


def new_meshes(rack: NewRack, shape: str, address: str | None) -> tuple[NewMesh, ...]:
    """The meshes, with the template of their controllers' addresses.

    Raises:
        UsageError: the template is not an address, or it is one address for several meshes.
    """
    template = address or f"{{id}}:{MESH_PORT}"
    require_mesh_address(template, rack.meshes)
    return tuple(NewMesh(rack.mesh_id(number), template, _geometry(shape)) for number in range(rack.meshes))


def require_mesh_address(template: str, meshes: int) -> None:
    """Refuse a template that does not give each of so many meshes an address.

    Raises:
        UsageError: the template is not an address, it lacks the port, or it is one address for several meshes.
    """
    require_address(template, "--mesh-address")
    if not is_address(template.replace("{id}", "mesh")):
        raise UsageError(f"--mesh-address: found {template!r}, expected HOST:PORT", hint=f"such as {{id}}:{MESH_PORT}")
    if meshes > 1 and "{id}" not in template:
        raise UsageError(f"--mesh-address: {template!r} is one address for {meshes} meshes", hint="use {id} in it")


def require_interfaces(names: Sequence[str], gpus: int) -> None:
    """Refuse too few interfaces for the lanes of so many GPUs of a host.

    Raises:
        UsageError: there are fewer than two for each GPU.
    """
    if len(names) < 2 * gpus:
        found = f"--interfaces: found {len(names)}, expected {2 * gpus}"
        raise UsageError(f"{found} for {counted(gpus, 'GPUs')}")


def _geometry(shape: str) -> dict[str, str | int]:
    if names_file(shape):
        return {"mesh": str(Path(shape).absolute())}
    kind, _, size = shape.rpartition(":")
    if kind == "hexagon":
        return {"shape": kind, "side": int(size)}
    columns, _, rows = size.partition("x")
    return ({"shape": kind} if kind else {}) | {"columns": int(columns), "rows": int(rows)}


def new_inventory(
    rack: NewRack,
    mesh: "Mesh",
    layouts: "Sequence[tuple[list[str], list[str], LaneLayout]]",
    answers: InitAnswers,
    interfaces: str | None,
    assumed: tuple[str, int],
) -> NewInventory:
    """The inventory without its rack, driver and meshes.

    ``assumed`` are model and memory (GiB) of GPUs that were not read.

    Raises:
        UsageError: a host has too few interfaces.
    """
    ports = {
        accelerator: pair
        for ranks, spares, layout in layouts
        for accelerator, pair in zip((*ranks, *spares), (*layout.ranks, *layout.spares), strict=True)
    }
    named = None if interfaces is None else names_in(interfaces, "--interfaces")
    hosts = tuple(_host(rack, name, ports, named, assumed) for name in rack.names)
    source = (
        "GPUs and interfaces as reported by the hosts"
        if rack.found
        else "models and interfaces are assumed: check them"
    )
    return NewInventory(
        rack="",
        hosts=hosts,
        meshes=(),
        driver="",
        job=answers.job or DEFAULT_JOB,
        rings=tuple(tuple(ranks) for ranks, _, _ in layouts),
        address=None if answers.address in {None, "{name}"} else answers.address,
        user=answers.user,
        remarks=(
            f"Written by lumctl inventory init: {counted(len(hosts), 'hosts')}, {mesh.name} meshes; {source}.",
            "Addresses, the binding of ports and the job are proposals: edit them to match the rack, then check the",
            "file with lumctl inventory validate. lumctl-inventory(5) describes every key.",
        ),
    )


def _host(
    rack: NewRack,
    name: str,
    ports: Mapping[str, tuple[int, int]],
    named: Sequence[str] | None,
    assumed: tuple[str, int],
) -> NewHost:
    found, count = rack.found.get(name), rack.gpus[name]
    needed = 2 * count
    if named is not None:
        require_interfaces(named, count)
        lanes = list(named)
    elif found is not None:
        lanes = list(found.fabric_interfaces(needed, rack.names))
    else:
        # A guess, as the remark in the file says: the first two interfaces are usually those of other networks.
        lanes = [f"eth{number + 2}" for number in range(needed)]
    accelerators = []
    for number in range(count):
        gpu = found.gpus[number] if found else None
        own = accelerator_id(name, number)
        # Rounded up, because drivers report a little less than the nominal size: 79.6 GiB of 80.
        memory_gib = ceil(gpu.memory_total_mib / 1024) if gpu and gpu.memory_total_mib else assumed[1]
        accelerators.append(
            NewAccelerator(
                id=own,
                model=(gpu.product if gpu else None) or assumed[0],
                memory_gib=memory_gib,
                mesh=rack.mesh_id(rack.mesh_of(number)),
                ports=ports[own],
                interfaces=(lanes[2 * number], lanes[2 * number + 1]),
                spare=own in rack.spares,
                pci=gpu.pci if gpu else None,
                uuid=gpu.uuid if gpu else None,
            )
        )
    remarks = (f"{name}: {'; '.join(each.words() for each in found.interfaces)}",) if found else ()
    return NewHost(name, tuple(accelerators), remarks)
