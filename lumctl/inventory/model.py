"""The rack as recorded, resolved: every folded name expanded, every reference checked.

These are plain frozen values. ``document.py`` has their form in YAML; ``load.py`` reads them.
Units are part of the names: ``_db`` (a ratio), ``_dbm`` (a power), ``_gib``, ``_c`` (degrees Celsius), ``_s``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from pathlib import Path

from lumctl.errors import RefusedError
from lumctl.inventory.exporters import Exporter, ReadingSource
from lumctl.inventory.geometry import Geometry
from lumctl.inventory.job_run import JobHook, JobRun
from lumctl.inventory.policies import NotificationReceiver, Policy
from lumctl.inventory.probe_times import PROBE_TIMES, ProbeTimes
from lumctl.inventory.sharing import Sharing, SpareConstraints
from lumctl.inventory.torus import RackTorus


class Role(StrEnum):
    """The role of an accelerator."""

    ACTIVE = "active"
    SPARE = "spare"
    DISABLED = "disabled"


class Evidence(StrEnum):
    """A method that can prove that a receiver hears the intended transmitter.

    ``lldp``: the receiver's host names the transmitter's host and interface in its LLDP neighbour table.
    ``blink``: the transmitter is switched off and on and the far receiver's power follows.
    """

    LLDP = "lldp"
    BLINK = "blink"


class DeviceKind(StrEnum):
    """A kind of device with an address of its own."""

    MESH = "mesh"
    SWITCH = "switch"
    CHASSIS = "chassis"
    """Holds transponders, and manages all of them."""
    POWER = "power"
    """Management controllers of hosts, out of band."""

    @property
    def carries_light(self) -> bool:
        """Whether circuits run through devices of this kind."""
        return self in {DeviceKind.MESH, DeviceKind.SWITCH}


@dataclass(frozen=True, slots=True)
class SshSettings:
    """How a host is reached over SSH; ``None`` leaves the choice to the SSH client configuration file."""

    user: str | None = None
    port: int | None = None
    jump: str | None = None
    key_file: Path | None = None
    config_file: Path | None = None
    sudo: bool = False


@dataclass(frozen=True, slots=True)
class PartOf:
    """A part of a device. ``component`` is the device's own name for the part; empty if it has only one part."""

    device: str
    component: str = ""


@dataclass(frozen=True, slots=True)
class DeviceLogin:
    """Credentials for a device. The secret is in a file or a variable; ``None`` means that SSH's own settings apply."""

    user: str | None = None
    key_file: Path | None = None
    secret_file: Path | None = None
    secret_variable: str | None = None


@dataclass(frozen=True, slots=True)
class Rack:
    """One rack. ``store`` is a folder or a database URL; ``None`` means the user's own state folder.

    ``gateway`` is the socket of the process that owns the rack's devices. That process runs on the host
    ``gateway_via``, or on this machine if that is ``None``. Only a rack with a ``torus`` can have slices.
    """

    name: str
    location: str | None = None
    store: str | None = None
    gateway: Path | None = None
    gateway_via: str | None = None
    torus: RackTorus | None = None


NVIDIA_SMI = "nvidia-smi"
"""The probe that is part of lumctl; others are plug-ins."""


@dataclass(frozen=True, slots=True)
class Host:
    """One server of a rack. ``mounts`` are the paths that must be mounted and writable.

    ``rdma_ports`` is how many InfiniBand and RoCE ports it must have. ``probe`` reads its accelerators. ``readings``
    is the source of its readings. ``exporters`` are the exporters to read; empty if the host is read over SSH alone.
    """

    name: str
    rack: str
    address: str
    ssh: SshSettings = SshSettings()
    power: "PartOf | None" = None
    mounts: tuple[str, ...] = ()
    rdma_ports: int | None = None
    readings: ReadingSource = ReadingSource.SHELL
    exporters: tuple[Exporter, ...] = ()
    probe: str = NVIDIA_SMI


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One GPU or other accelerator. ``index`` is its minor number on the host (stable when a sibling is lost).

    ``burned_in`` is the day (UTC) on which its burn-in ended or will end. A ``reserved`` spare is used only if it
    is named explicitly; one that is ``reserved_for`` a job also by that job. Accelerators of a host with the same
    ``tied`` share a board or work as a unit: if one of them fails, all are replaced. ``nvlinks`` is how many NVLinks
    must be active.
    """

    id: str
    host: str
    rack: str
    model: str
    memory_gib: float
    role: Role
    index: int
    pci: str | None = None
    uuid: str | None = None
    burned_in: date | None = None
    reserved: bool = False
    reserved_for: str | None = None
    tied: str | None = None
    nvlinks: int | None = None


def classes_of(accelerators: Mapping[str, Accelerator]) -> dict[str, str]:
    """The class of each accelerator: its model, with its memory if the inventory has the model in several sizes."""
    sizes: dict[str, set[float]] = {}
    for each in accelerators.values():
        sizes.setdefault(each.model, set()).add(each.memory_gib)
    return {
        name: each.model if len(sizes[each.model]) == 1 else f"{each.model} {each.memory_gib:g} GiB"
        for name, each in accelerators.items()
    }


@dataclass(frozen=True, slots=True)
class Lane:
    """Where a transponder connects to the fabric: one duplex port (``tx == rx``), or a transmit and a receive port.

    ``tx`` is the device port into which the transponder sends light, ``rx`` the one it receives light from.
    """

    device: str
    tx: int
    rx: int

    @property
    def duplex(self) -> bool:
        """Whether one port carries both directions."""
        return self.tx == self.rx

    @property
    def ports(self) -> tuple[int, ...]:
        """The device ports of this lane, each once."""
        return (self.tx,) if self.duplex else (self.tx, self.rx)


@dataclass(frozen=True, slots=True)
class Transponder:
    """Turns one electrical lane of an accelerator's host into light.

    ``interface`` is the host's network interface of the lane. ``verify`` are the methods that can prove which
    transmitter its receiver hears, best first. Powers are the planning values of the loss budget. If ``module`` names
    a part of a chassis, the chassis reads the optics and switches the transponder; the host's driver does the rest.
    ``rate_gb_s``, ``rate_lanes`` and ``module_part`` are the expected values of its port and module; ``None`` if not
    stated.
    """

    id: str
    accelerator: str
    host: str
    interface: str
    lane: Lane
    driver: str
    verify: tuple[Evidence, ...]
    tx_power_dbm: float
    rx_sensitivity_dbm: float
    module: PartOf | None = None
    rate_gb_s: float | None = None
    rate_lanes: int | None = None
    module_part: str | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """A device with its own address; ``via`` is the host through which it is reached.

    A mesh has a ``geometry``. A switch has ports only: light enters at the first ``input_count`` ports and leaves at
    the others. If ``input_count`` includes all ports, any port may be connected to any other. A chassis and a power
    controller have neither geometry nor ports.
    ``stuck`` PUCs keep their state; nothing may be routed through ``damaged`` ones. ``puc_loss_db`` and
    ``port_loss_db`` are losses of single PUCs and ports beyond ``loss_per_puc_db`` and ``loss_per_port_db``.
    ``timeout_s`` limits one call of its driver.
    """

    id: str
    rack: str
    kind: DeviceKind
    driver: str
    address: str
    geometry: Geometry | None
    port_count: int
    loss_per_puc_db: float
    loss_per_port_db: float
    settle_ms: float
    timeout_s: float = 5.0
    stuck: Mapping[int, str] = field(default_factory=dict)
    blocked_ports: frozenset[int] = frozenset()
    damaged: frozenset[int] = frozenset()
    puc_loss_db: Mapping[int, float] = field(default_factory=dict)
    port_loss_db: Mapping[int, float] = field(default_factory=dict)
    input_count: int = 0
    via: str | None = None
    login: DeviceLogin = DeviceLogin()


@dataclass(frozen=True, slots=True, order=True)
class DevicePort:
    """One port of one device, written ``m0:3``."""

    device: str
    port: int

    def __str__(self) -> str:
        return f"{self.device}:{self.port}"


@dataclass(frozen=True, slots=True)
class Fibre:
    """One fibre or a bundle of fibres between two devices: ``ports[i]`` are the ports that fibre ``i`` joins.

    ``loss_db`` is the loss of light from port to port: of the fibre and its connectors, without the ports. ``capacity``
    is how many circuits may run through the whole bundle at once.
    """

    name: str
    devices: tuple[str, str]
    ports: tuple[tuple[int, int], ...]
    loss_db: float
    capacity: int

    @property
    def pairs(self) -> tuple[tuple[DevicePort, DevicePort], ...]:
        """The two ends of each fibre."""
        a, b = self.devices
        return tuple((DevicePort(a, here), DevicePort(b, there)) for here, there in self.ports)


@dataclass(frozen=True, slots=True)
class RingLinks:
    """Each rank is linked to the next one, the last to the first."""

    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PairLinks:
    """The listed pairs of ranks are linked."""

    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TorusLinks:
    """Ranks in row-major order on a torus of ``shape``; each is linked to its neighbour along every dimension.

    ``widths``: the circuits of each link, by dimension; the lanes then follow each other without a gap. Without it each
    link is one circuit, and a dimension that joins nothing leaves its two lanes idle.
    """

    ranks: tuple[int, ...]
    shape: tuple[int, ...]
    widths: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class JobPhase:
    """A part of a job's training step, and the links that the job needs in it. The phases of a job share its lanes."""

    name: str
    links: tuple[RingLinks | PairLinks | TorusLinks, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A training job: ``ranks[i]`` is the accelerator on which rank ``i`` was first placed.

    A job with ``phases`` passes through them in each training step in the given ``order``, in which a phase may occur
    more than once. Its ``links`` are then those of the first one.

    If it ``is_slice``, lumctl has placed it and the inventory does not name it. ``needs_no_pause`` means that its light
    paths may change while it runs, so it need not be stopped even without a hook. ``constraints`` are those of its
    spares.
    """

    name: str
    rack: str
    ranks: tuple[str, ...]
    links: tuple[RingLinks | PairLinks | TorusLinks, ...]
    hook: JobHook | None = None
    needs_no_pause: bool = False
    run: JobRun | None = None
    is_slice: bool = False
    constraints: SpareConstraints = field(default_factory=SpareConstraints)
    phases: tuple[JobPhase, ...] = ()
    order: tuple[str, ...] = ()

    def in_phase(self, phase: JobPhase) -> "Job":
        """The job with the links of one of its phases."""
        return replace(self, links=phase.links)

    def in_phases(self) -> "tuple[Job, ...]":
        """The job with the links of each of its phases; itself if it has none."""
        return tuple(map(self.in_phase, self.phases)) or (self,)

    def run_settings(self) -> JobRun:
        """The settings of ``lumctl job run``.

        Raises:
            RefusedError: the inventory has no such settings.
        """
        if self.run is None:
            raise RefusedError(f"job {self.name} has no `run:` in the inventory", hint="add one: lumctl-inventory(5)")
        return self.run


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits that an operator may set, used if the hardware states none.

    ``light_deadline_s`` is the longest time from a change until the light must have arrived and been recognised. Links
    re-lock within a second or two.
    """

    gpu_temperature_c: float = 75.0
    memory_temperature_c: float = 95.0
    rx_margin_db: float = 2.0
    stale_after_s: float = 30.0
    xid_max_age_s: float = 86400.0
    light_deadline_s: float = 6.0


@dataclass(frozen=True, slots=True)
class Inventory:
    """A whole inventory file. All mappings keep the order of the file.

    ``fillers`` are jobs without links that run on spares until a swap needs one of these; ``jobs`` leaves them out.

    ``digest`` is the SHA-256 of its text and of its mesh files. ``probes`` has the times of each kind of probe: those
    of :data:`PROBE_TIMES` unless the file states others.
    """

    path: Path
    digest: str
    racks: Mapping[str, Rack]
    hosts: Mapping[str, Host]
    accelerators: Mapping[str, Accelerator]
    transponders: Mapping[str, Transponder]
    devices: Mapping[str, Device]
    jobs: Mapping[str, Job]
    thresholds: Thresholds
    probes: Mapping[str, ProbeTimes] = field(default_factory=lambda: PROBE_TIMES)
    fibres: Mapping[str, Fibre] = field(default_factory=dict)
    policies: tuple[Policy, ...] = ()
    sharing: Sharing = field(default_factory=Sharing)
    fillers: Mapping[str, Job] = field(default_factory=dict)
    receivers: Mapping[str, NotificationReceiver] = field(default_factory=dict)
    fibre_at: Mapping[DevicePort, tuple[Fibre, DevicePort]] = field(init=False, repr=False, compare=False)
    """For every port with a fibre: the fibre, and the port at its other end."""
    _lanes: Mapping[str, tuple[Transponder, ...]] = field(init=False, repr=False, compare=False)
    _accelerators_of: Mapping[str, tuple[Accelerator, ...]] = field(init=False, repr=False, compare=False)
    _network_of: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """For each device with fibres: one device that represents all devices that fibres join with it."""

    def __post_init__(self) -> None:
        # Once for all: every trace of light and every observation looks these up.
        lanes: dict[str, list[Transponder]] = {}
        for transponder in self.transponders.values():
            lanes.setdefault(transponder.accelerator, []).append(transponder)
        object.__setattr__(self, "_lanes", {accelerator: tuple(found) for accelerator, found in lanes.items()})
        of_host: dict[str, list[Accelerator]] = {}
        for accelerator in self.accelerators.values():
            of_host.setdefault(accelerator.host, []).append(accelerator)
        object.__setattr__(self, "_accelerators_of", {host: tuple(found) for host, found in of_host.items()})
        across = {here: (f, there) for f in self.fibres.values() for p in f.pairs for here, there in (p, p[::-1])}
        object.__setattr__(self, "fibre_at", across)
        network_of: dict[str, str] = {}
        for fibre in self.fibres.values():
            a, b = (network_of.setdefault(device, device) for device in fibre.devices)
            network_of = {device: a if of == b else of for device, of in network_of.items()}
        object.__setattr__(self, "_network_of", network_of)

    @property
    def controlled(self) -> Mapping[str, Job]:
        """The jobs and the filler jobs: what hooks control."""
        return {**self.jobs, **self.fillers}

    @property
    def light_devices(self) -> tuple[Device, ...]:
        """The devices that circuits run through, in the order of the file."""
        return tuple(device for device in self.devices.values() if device.kind.carries_light)

    def joined_by_fibres(self, a: str, b: str) -> bool:
        """Whether fibres connect two devices, directly or through other devices. A device is connected to itself."""
        return self.network_of(a) == self.network_of(b)

    def network_of(self, device: str) -> str:
        """One device that represents all devices that fibres join with this one; itself if there are none."""
        return self._network_of.get(device, device)

    def transponders_of(self, accelerator: str) -> tuple[Transponder, ...]:
        """The lanes of one accelerator, in the order of the file: lane 0, lane 1, ..."""
        return self._lanes.get(accelerator, ())

    def tied_to(self, accelerator: str) -> tuple[Accelerator, ...]:
        """The other accelerators that are tied to an accelerator, in the order of the file."""
        one = self.accelerators[accelerator]
        if one.tied is None:
            return ()
        return tuple(a for a in self.accelerators.values() if a.tied == one.tied and a.id != accelerator)

    def accelerators_of(self, host: str) -> tuple[Accelerator, ...]:
        """The accelerators of one host, in the order of the file."""
        return self._accelerators_of.get(host, ())
