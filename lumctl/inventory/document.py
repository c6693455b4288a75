"""The inventory as written in the file: one class for each mapping.

A value here is as the author wrote it: names are folded, defaults not filled in, references not checked.
:mod:`lumctl.inventory.model` has the result, :mod:`lumctl.inventory.load` makes it.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from lumctl.inventory.entry import VARIABLE, Entry, Number, OneOrMany, Text
from lumctl.inventory.exporters import ReadingSource
from lumctl.inventory.geometry import MOST_COLUMNS, MOST_SIDE
from lumctl.inventory.job_entries import FillerEntry, JobControlEntry, JobEntry
from lumctl.inventory.model import DeviceKind, Evidence, Role, Thresholds
from lumctl.inventory.policy_entries import PolicyEntry, ReceiverEntry, SharingEntry
from lumctl.inventory.probe_times import PROBE_TIMES


def _form(value: Any) -> str:
    return "url" if isinstance(value, str) else "port"


PortOrUrl = Annotated[
    Annotated[Text, Tag("url")] | Annotated[Annotated[int, Field(ge=1, le=65535)], Tag("port")], Discriminator(_form)
]


class ExportersEntry(Entry):
    """Where the exporters of hosts answer: for each kind a port of the host's address, or a URL.

    In a URL, {address} and {name} are replaced by the host's. Without any kind, dcgm and node are read at their usual
    ports.
    """

    dcgm: PortOrUrl | None = Field(None, description="dcgm-exporter, usually port 9400.")
    node: PortOrUrl | None = Field(None, description="node_exporter, usually port 9100.")
    amd: PortOrUrl | None = Field(None, description="AMD device-metrics-exporter, usually port 5000.")
    gpud: PortOrUrl | None = Field(None, description="gpud (its /v1/states), usually port 15132 with TLS.")
    user: Text | None = Field(None, description="User for HTTP Basic; without one, the secret is a bearer token.")
    secret_file: Text | None = Field(
        None, description="File that contains the secret, readable by its owner only; relative to this file, ~ allowed."
    )
    secret_variable: Annotated[str, StringConstraints(pattern=VARIABLE)] | None = Field(
        None, description="Environment variable that contains the secret; it overrides the file."
    )
    ca_file: Text | None = Field(
        None,
        description="Certificates of the authorities that sign the exporters' certificates; relative to this file.",
    )


Decibel = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Power = Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)]
PCI_ADDRESS = r"^([0-9a-fA-F]{4}){1,2}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
PATTERNS = {
    PCI_ADDRESS: "a PCI address such as 0000:9b:00.0",
    VARIABLE: "the name of an environment variable",
    DATE: "a date such as 2026-03-31",
}
"""The words for each pattern in an error message."""
PciAddress = Annotated[str, StringConstraints(pattern=PCI_ADDRESS)]
DateText = Annotated[str, StringConstraints(pattern=DATE)]
# Everything is checked in strict mode, except members of an enumeration: the file has them as text.
RoleWord = Annotated[Role, Field(strict=False)]
EvidenceWord = Annotated[Evidence, Field(strict=False)]
KindWord = Annotated[DeviceKind, Field(strict=False)]
ReadingsWord = Annotated[ReadingSource, Field(strict=False)]
_READINGS = "shell: commands over SSH; prometheus: exporters over HTTP, without SSH; both (default: shell)."


Extents = Annotated[list[Annotated[int, Field(ge=1, le=1_000)]], Field(min_length=1, max_length=3)]
Names = Annotated[list[Text], Field(min_length=1)]


class RackTorusEntry(Entry):
    """Accelerators on a torus: which server is where, and the fibres between neighbours."""

    shape: Extents = Field(description="Accelerators along each dimension.", examples=[[4, 4, 4]])
    server: Extents = Field(description="Accelerators of one server along each dimension.", examples=[[2, 2, 1]])
    hosts: OneOrMany[Text] = Field(
        description="The servers in row-major order: the last dimension changes fastest; folded.", examples=["h[01-16]"]
    )
    edges: Names = Field(description="Fibres between servers side by side, each one edge; folded.")
    wraps: list[Text] = Field(
        [], description="Fibres that join the last server of a row with the first, each one edge; folded."
    )
    slices: JobControlEntry | None = Field(None, description="How the jobs that lumctl places here are run.")


class RackEntry(Entry):
    """One rack: a domain of light. One store and one lease belong to it."""

    location: Text | None = Field(None, description="Location of the rack, for people.")
    store: Text | None = Field(
        None,
        description="Folder (relative to this file, ~ allowed) or database URL of the journal, leases and health.",
    )
    gateway: Text | None = Field(
        None,
        description="Socket of the gateway that alone writes to the rack's devices (lumctl gateway run); "
        "relative to this file, ~ allowed.",
    )
    gateway_via: Text | None = Field(None, description="Host on which the gateway runs, if not on this machine.")
    torus: RackTorusEntry | None = Field(None, description="For racks on which lumctl places jobs: lumctl slice.")


class SshEntry(Entry):
    """How hosts are reached over SSH. Missing settings come from the SSH client configuration."""

    user: Text | None = None
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    jump: Text | None = Field(None, description="Jump host: [USER@]HOST[:PORT].")
    key_file: Text | None = Field(None, description="Private key; relative to this file, ~ allowed.")
    config_file: Text | None = Field(None, description="SSH client configuration; relative to this file, ~ allowed.")
    sudo: bool | None = Field(None, description="Put `sudo -n` before commands that need it (default: false).")


class TransponderDefaults(Entry):
    """Default values of transponders. Powers are planning values, dBm."""

    driver: Text | None = Field(None, description="Name of the driver plug-in (default: hostport).")
    verify: list[EvidenceWord] | None = Field(
        None, description="Methods that can prove which transmitter a receiver hears, best first (default: lldp)."
    )
    tx_power_dbm: Power | None = Field(None, description="Launch power (default: 2).")
    rx_sensitivity_dbm: Power | None = Field(None, description="Minimum power that a receiver needs (default: -15.8).")


class Defaults(Entry):
    """Settings for all hosts and all transponders; an entry's own settings override them."""

    ssh: SshEntry | None = None
    transponder: TransponderDefaults | None = None
    readings: ReadingsWord | None = Field(None, description=_READINGS)
    exporters: ExportersEntry | None = None


class AcceleratorEntry(Entry):
    """Accelerators of one kind in each host of the entry around it."""

    id: Text = Field(description="Folded; {host} is replaced by the host's name.", examples=["{host}-gpu[0-3]"])
    model: Text
    memory_gib: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
    role: RoleWord = Role.ACTIVE
    index: OneOrMany[Number] | None = Field(
        None, description="Minor numbers on the host (default: the position in the host's list, from 0)."
    )
    pci: OneOrMany[PciAddress] | None = Field(None, description="PCI address of each accelerator.")
    uuid: OneOrMany[Text] | None = Field(None, description="UUID of each accelerator.")
    burned_in: OneOrMany[DateText] | None = Field(
        None, description="Day (UTC) on which its burn-in ended or will end; earlier faults do not count."
    )
    nvlinks: Number | None = Field(
        None, description="NVLinks that must be active (default: as on most accelerators of its model in the rack)."
    )
    reserved: bool = Field(default=False, description="Spares only: used only if --spare names it.")
    reserved_for: Text | None = Field(None, description="Spares only: the job that may use it.")
    tied: OneOrMany[Text] | None = Field(
        None,
        description="Name of a group in one host that is replaced together; {host} is replaced by the host's name.",
        examples=["{host}-board0"],
    )


class HostEntry(Entry):
    """Servers of one kind."""

    name: Text = Field(description="Folded.", examples=["h[01-16]"])
    rack: OneOrMany[Text] | None = Field(None, description="May be omitted if there is only one rack.")
    address: OneOrMany[Text] = Field(
        "{name}", description="Host name or IP address for SSH; folded; {name} is replaced by the host's name."
    )
    ssh: SshEntry | None = None
    power: OneOrMany[Text] | None = Field(
        None, description="DEVICE or DEVICE/SYSTEM: the management controller, a device of kind power; folded."
    )
    mounts: list[Text] = Field(
        [], description="Paths that must be mounted and writable.", examples=[["/data", "/checkpoints"]]
    )
    readings: ReadingsWord | None = Field(None, description=_READINGS)
    exporters: ExportersEntry | None = None
    rdma_ports: Number | None = Field(
        None, description="InfiniBand and RoCE ports that it must have (default: as on most hosts of the rack)."
    )
    probe: Text | None = Field(
        None,
        description="Probe that reads its accelerators: nvidia-smi (default), or a plug-in.",
        examples=["amd-smi", "hl-smi"],
    )
    accelerators: list[AcceleratorEntry] = Field([])


Columns = Annotated[int, Field(ge=1, le=MOST_COLUMNS)]


class GeometryEntry(Entry):
    """The shape of a mesh, or the file that describes it."""

    shape: Literal["parallelogram", "hexagon", "square"] = Field(
        "parallelogram", description="Shape of the mesh: two shapes of hexagonal cells, or a grid of squares."
    )
    columns: Columns | None = Field(
        None, description="Only for a parallelogram or a grid of squares, and required there."
    )
    rows: Columns | None = Field(None, description="Only for a parallelogram or a grid of squares, and required there.")
    side: Annotated[int, Field(ge=1, le=MOST_SIDE)] | None = Field(
        None, description="Only for a hexagon, and required there: the number of cells along each side."
    )
    mesh: Text | None = Field(
        None, description="Instead of all these keys: a file that describes the mesh; relative to this file, ~ allowed."
    )


class LoginEntry(Entry):
    """How a device accepts our login."""

    user: Text | None = None
    key_file: Text | None = Field(None, description="Private SSH key; relative to this file, ~ allowed.")
    secret_file: Text | None = Field(
        None,
        description="File that contains the password, readable by its owner only; relative to this file, ~ allowed.",
    )
    secret_variable: Annotated[str, StringConstraints(pattern=VARIABLE)] | None = Field(
        None, description="Environment variable that contains the password; it overrides the file."
    )


class DeviceEntry(Entry):
    """Devices of one kind: meshes, switches, chassis with transponders, management controllers."""

    id: Text = Field(description="Folded.", examples=["rail[0-3]"])
    rack: OneOrMany[Text] | None = Field(None, description="May be omitted if there is only one rack.")
    kind: KindWord
    driver: Text = Field(description="Name of the driver plug-in.", examples=["smartlight"])
    address: OneOrMany[Text] = Field(
        description="HOST:PORT, or http://HOST:PORT without TLS; folded; {id} is replaced by the device's id."
    )
    geometry: GeometryEntry | None = Field(None, description="Only for meshes, and required there.")
    port_count: Annotated[int, Field(ge=2, le=100_000)] | None = Field(
        None, description="Only for switches, and required there: ports are numbered from 0."
    )
    input_count: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None,
        description=(
            "Only for switches: number of input ports, which come first; light leaves at the others (default: half). "
            "If it equals the number of ports, any port can be connected to any other."
        ),
    )
    via: Text | None = Field(
        None, description="Host whose SSH connection leads to the device, if the device has no login."
    )
    login: LoginEntry | None = Field(None, description="Our login on the device, if it requires one.")
    loss_per_puc_db: Decibel = Field(0.25, description="Planning value: loss of one PUC on a path.")
    loss_per_port_db: Decibel = Field(1.0, description="Planning value: loss of coupling in or out at one port.")
    settle_ms: Annotated[float, Field(ge=0, le=600_000, allow_inf_nan=False)] = Field(
        5.0, description="Time after a change until light has arrived."
    )
    timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = Field(
        5.0, description="Time limit in seconds for one call of its driver; a late call is abandoned."
    )
    stuck: dict[int, Literal["bar", "cross"]] = Field({}, description="Stuck PUCs, and their states.")
    damaged: list[Number] = Field([], description="PUCs that no route may use.")
    blocked_ports: list[Number] = Field([], description="Ports that must not be used.")
    puc_loss_db: dict[int, Decibel] = Field({}, description="Additional loss of single PUCs beyond loss_per_puc_db.")
    port_loss_db: dict[int, Decibel] = Field({}, description="Additional loss of single ports beyond loss_per_port_db.")


class FibreEndEntry(Entry):
    """One end of a fibre or a bundle: ports of one device."""

    device: Text
    port: OneOrMany[Number]


def _fibre_end(value: Any) -> str:
    return "ports" if isinstance(value, dict) else "text"


class FibreEntry(Entry):
    """A fibre, or a bundle of them, between ports of two devices."""

    name: Text
    ends: list[
        Annotated[Annotated[Text, Tag("text")] | Annotated[FibreEndEntry, Tag("ports")], Discriminator(_fibre_end)]
    ] = Field(min_length=2, max_length=2, description="DEVICE/port/N, folded for a bundle, or a device and its ports.")
    loss_db: Decibel = Field(0.0, description="Planning value: loss from port to port, without the ports.")
    capacity: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None, description="How many circuits it may carry at once (default: its number of fibres)."
    )


class TransponderEntry(Entry):
    """Lanes of one kind: each turns one interface of an accelerator's host into light."""

    id: Text = Field(description="Folded.", examples=["h[01-16]-gpu0-a"])
    accelerator: OneOrMany[Text] = Field(description="Folded, one for each id.")
    interface: OneOrMany[Text] = Field(description="Network interface of the host, such as eth2.")
    device: OneOrMany[Text] = Field(description="Mesh or switch at the other end of the fibre.")
    port: OneOrMany[Number] | None = Field(None, description="Duplex lane: its device port; else use tx and rx.")
    tx: OneOrMany[Number] | None = Field(None, description="Device port into which the lane sends light.")
    rx: OneOrMany[Number] | None = Field(None, description="Device port from which the lane receives light.")
    driver: Text | None = None
    verify: list[EvidenceWord] | None = Field(
        None, description="Methods that can prove which transmitter the receiver hears, best first."
    )
    tx_power_dbm: Power | None = None
    rx_sensitivity_dbm: Power | None = None
    rate_gb_s: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)] | None = Field(
        None,
        description="Rate of its port in Gbit/s (default: the rate of most ports of its kind in the rack).",
    )
    rate_lanes: Annotated[int, Field(ge=1, le=64)] | None = Field(
        None, description="Electrical lanes that an InfiniBand port must have, such as 4 of 4X."
    )
    module_part: Text | None = Field(None, description="Part number that its module must have.")
    module: OneOrMany[Text] | None = Field(
        None, description="CHASSIS/COMPONENT: where the transponder is managed, if not by its host; folded."
    )


_LIMITS = Thresholds()
Limit = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ThresholdsEntry(Entry):
    """Limits of the health rules, where the hardware states none of its own."""

    gpu_temperature_c: Limit = _LIMITS.gpu_temperature_c
    memory_temperature_c: Limit = _LIMITS.memory_temperature_c
    rx_margin_db: Limit = _LIMITS.rx_margin_db
    stale_after_s: Limit = _LIMITS.stale_after_s
    xid_max_age_s: Limit = _LIMITS.xid_max_age_s
    light_deadline_s: Limit = _LIMITS.light_deadline_s


class ProbeEntry(Entry):
    """How often a probe runs, and how long it may take."""

    every_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] | None = Field(
        None, description="Seconds between two runs; 0: at every tick."
    )
    deadline_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] | None = Field(
        None, description="Seconds within which it must answer."
    )


def _times(kind: str) -> str:
    times = PROBE_TIMES[kind]
    return f"Default: every_s {times.every_s:g}, deadline_s {times.deadline_s:g}."


class ProbesEntry(Entry):
    """When the probes of all hosts run; missing settings have default values."""

    gpu: ProbeEntry | None = Field(None, description=_times("gpu"))
    nvlink: ProbeEntry | None = Field(None, description=_times("nvlink"))
    kernel: ProbeEntry | None = Field(None, description=_times("kernel"))
    net: ProbeEntry | None = Field(None, description=_times("net"))
    infiniband: ProbeEntry | None = Field(None, description=_times("infiniband"))
    mounts: ProbeEntry | None = Field(None, description=_times("mounts"))
    disks: ProbeEntry | None = Field(None, description=_times("disks"))
    clock: ProbeEntry | None = Field(None, description=_times("clock"))
    crashes: ProbeEntry | None = Field(None, description=_times("crashes"))
    fabric_log: ProbeEntry | None = Field(None, description=_times("fabric_log"))
    services: ProbeEntry | None = Field(None, description=_times("services"))
    capacity: ProbeEntry | None = Field(None, description=_times("capacity"))
    adapters: ProbeEntry | None = Field(None, description=_times("adapters"))
    counters: ProbeEntry | None = Field(None, description=_times("counters"))
    lldp: ProbeEntry | None = Field(None, description=_times("lldp"))
    optics: ProbeEntry | None = Field(None, description=_times("optics"))
    dcgm: ProbeEntry | None = Field(None, description=_times("dcgm"))
    node: ProbeEntry | None = Field(None, description=_times("node"))
    amd: ProbeEntry | None = Field(None, description=_times("amd"))
    gpud: ProbeEntry | None = Field(None, description=_times("gpud"))


class Document(Entry):
    """An inventory file of lumctl. See lumctl-inventory(5)."""

    lumctl: Literal[1] = Field(description="Version of this format.")
    racks: dict[Text, RackEntry | None] = Field(min_length=1)
    defaults: Defaults | None = None
    hosts: list[HostEntry] = Field(min_length=1)
    devices: list[DeviceEntry] = Field([])
    fibres: list[FibreEntry] = Field([])
    transponders: list[TransponderEntry] = Field([])
    jobs: list[JobEntry] = Field([])
    fillers: list[FillerEntry] = Field([], description="Jobs that run on spares until a swap needs one of these.")
    thresholds: ThresholdsEntry | None = None
    probes: ProbesEntry | None = None
    receivers: list[ReceiverEntry] = Field([], description="Receivers of the escalations of policies, by name.")
    policies: list[PolicyEntry] = Field(
        [],
        description=(
            "What lumctl watch may do automatically; without a policy, nothing. The first policy that matches decides."
        ),
    )
    sharing: SharingEntry | None = Field(None, description="How spares are shared among jobs.")
