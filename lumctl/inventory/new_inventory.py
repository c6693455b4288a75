"""The text of a new inventory: similar hosts are folded, and comments help the operator complete it."""

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from lumctl.inventory.folded_names import FoldError, expand, expand_list, fold
from lumctl.printable import printable

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./ -]*[A-Za-z0-9]|[A-Za-z]")
_WIDTH = 110
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off"})
"""Words that some YAML readers do not read as text."""


@dataclass(frozen=True, slots=True)
class NewAccelerator:
    """One accelerator with its two lanes: the ``mesh`` and its ``ports``, and the host's ``interfaces``."""

    id: str
    model: str
    memory_gib: int
    mesh: str
    ports: tuple[int, int]
    interfaces: tuple[str, str]
    spare: bool = False
    pci: str | None = None
    uuid: str | None = None


@dataclass(frozen=True, slots=True)
class NewHost:
    """One host; ``remarks`` become comments above it."""

    name: str
    accelerators: tuple[NewAccelerator, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewMesh:
    """One mesh. ``address`` may hold ``{id}``, and is the same for all meshes. ``geometry`` is as in the file."""

    id: str
    address: str
    geometry: Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class NewInventory:
    """The content of a new inventory. ``rings`` are the accelerators of the job, one ring per mesh, in rank order.

    ``address`` is the template of the hosts' addresses, or the addresses themselves, folded, in the order of the hosts;
    ``None`` means that their names are the addresses. If ``user`` is ``None``, ssh's own configuration states the user.
    ``remarks`` become the first comment.
    """

    rack: str
    hosts: tuple[NewHost, ...]
    meshes: tuple[NewMesh, ...]
    driver: str
    job: str
    rings: tuple[tuple[str, ...], ...]
    address: str | None = None
    user: str | None = None
    remarks: tuple[str, ...] = ()


def text_of(new: NewInventory) -> str:
    """The inventory as YAML."""
    parts = [
        _comment(new.remarks),
        "lumctl: 1\n",
        f"racks:\n  {scalar(new.rack)}:\n    location: unknown  # where it is, for people\n",
        _defaults(new),
        "\n".join(["hosts:", *_hosts(new)]) + "\n",
        "\n".join(["devices:", *_devices(new)]) + "\n",
        _comment(
            (
                "The lanes: the host's interface, and the port of the mesh at which its fibre ends. Ports are numbered",
                "along the perimeter of a mesh, see lumctl-mesh(7). These were chosen so that the circuits of the job,",
                "and those of a replacement, can be routed: connect the fibres so, or write how they are connected.",
            )
        )
        + "\n".join(["transponders:", *_transponders(new.hosts)])
        + "\n",
        _comment(("Each link of a ring leaves a rank through its second lane and arrives at the next rank's first.",))
        + "\n".join(["jobs:", *_job(new)])
        + "\n",
    ]
    return "\n".join(part for part in parts if part)


def hosts_text(names: Sequence[str], address: str | None, user: str | None) -> str:
    """A minimal inventory to reach these hosts, about which nothing else is known yet."""
    lines = ["lumctl: 1", "racks: {rack: {}}"]
    if user:
        lines.append(f"defaults: {{ssh: {{user: {scalar(user)}}}}}")
    lines.append("hosts:")
    addresses = _addresses(address, names)
    for name in names:
        lines.append(f"  - name: {_folded(name)}")
        lines += _address_lines(address, addresses, [name])
        lines.append('    accelerators: [{id: "{host}-gpu0", model: unknown, memory_gib: 1}]')
    return "\n".join(lines) + "\n"


def _addresses(address: str | None, names: Sequence[str]) -> dict[str, str]:
    """The address of each host if they are listed; empty for a template."""
    return {} if address is None or "{name}" in address else dict(zip(names, expand_list(address), strict=True))


def _address_lines(template: str | None, addresses: Mapping[str, str], names: Sequence[str]) -> list[str]:
    if template is None:
        return []
    if not addresses:
        return [f"    address: {scalar(template)}"]
    folded = [scalar(each) for each in fold(addresses[name] for name in names)]
    return [f"    address: {folded[0] if len(folded) == 1 else '[' + ', '.join(folded) + ']'}"]


def scalar(text: str) -> str:
    """A text in YAML: plain if that is safe, otherwise in quotes, with control characters escaped."""
    safe = printable(text)
    if _PLAIN.fullmatch(safe) and safe.lower() not in _WORDS:
        return safe
    return json.dumps(safe, ensure_ascii=False)


def _comment(lines: Iterable[str]) -> str:
    return "".join(f"# {printable(line)}".rstrip() + "\n" for line in lines)


def _defaults(new: NewInventory) -> str:
    lines = ["defaults:"]
    if new.user:
        lines += ["  ssh:", f"    user: {scalar(new.user)}"]
    lines += ["  transponder:", "    verify: [lldp]  # how to prove which transmitter a lane hears: lldp, blink"]
    return "\n".join(lines) + "\n"


def _hosts(new: NewInventory) -> list[str]:
    lines: list[str] = []
    addresses = _addresses(new.address, [host.name for host in new.hosts])
    for _, group in groupby(new.hosts, key=_kind):
        alike = list(group)
        for name in fold(host.name for host in alike):
            members = set(expand(name))
            first = next(host for host in alike if host.name in members)
            remarks = [remark for host in alike if host.name in members for remark in host.remarks]
            lines += [f"  # {line}" for remark in remarks for line in _wrapped(remark)]
            lines.append(f"  - name: {_folded(name)}")
            lines += _address_lines(new.address, addresses, expand(name))
            lines.append("    accelerators:")
            for group_of_equals in _equals(first):
                lines += _accelerators(first, group_of_equals)
    return lines


def _wrapped(remark: str) -> list[str]:
    return textwrap.wrap(printable(remark), _WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _kind(host: NewHost) -> tuple[object, ...]:
    """The properties that two hosts must share to be written as one entry."""
    own = len(host.name)
    return tuple((a.id[own:], a.model, a.memory_gib, a.spare, a.pci, a.uuid) for a in host.accelerators)


def _equals(host: NewHost) -> list[list[NewAccelerator]]:
    def kind(a: NewAccelerator) -> tuple[object, ...]:
        return a.model, a.memory_gib, a.spare, a.pci is None, a.uuid is None

    return [list(group) for _, group in groupby(host.accelerators, key=kind)]


def _accelerators(host: NewHost, group: Sequence[NewAccelerator]) -> list[str]:
    first = group[0]
    (suffix,) = fold(each.id[len(host.name) :] for each in group)
    lines = [
        f'      - id: "{{host}}{suffix}"',
        f"        model: {scalar(first.model)}",
        f"        memory_gib: {first.memory_gib}",
    ]
    if first.spare:
        lines.append("        role: spare")
    for key in ("pci", "uuid"):
        values = [str(getattr(each, key)) for each in group]
        if getattr(first, key) is not None:
            lines.append(f"        {key}: [{', '.join(json.dumps(printable(value)) for value in values)}]")
    return lines


def _devices(new: NewInventory) -> list[str]:
    lines: list[str] = []
    for name in fold(mesh.id for mesh in new.meshes):
        mesh = next(mesh for mesh in new.meshes if mesh.id in expand(name))
        geometry = ", ".join(
            f"{key}: {value if isinstance(value, int) else scalar(value)}" for key, value in mesh.geometry.items()
        )
        lines += [
            f"  - id: {_folded(name)}",
            "    kind: mesh",
            f"    driver: {scalar(new.driver)}  # lumctl plugin list shows the others",
            f"    address: {scalar(mesh.address)}  # of its controller; {{id}} is the name above",
            f"    geometry: {{{geometry}}}",
        ]
    return lines


def _transponders(hosts: Sequence[NewHost]) -> list[str]:
    lines: list[str] = []
    for number in range(max(len(host.accelerators) for host in hosts)):
        having = {host.name: host for host in hosts if number < len(host.accelerators)}
        for name in fold(having):
            own = [having[each].accelerators[number] for each in expand(name)]
            suffix = own[0].id[len(expand(name)[0]) :]
            for lane, letter in enumerate("ab"):
                lines += [
                    f"  - id: {_folded(f'{name}{suffix}-{letter}')}",
                    f"    accelerator: {_folded(name + suffix)}",
                    f"    interface: {_zipped([scalar(each.interfaces[lane]) for each in own])}",
                    f"    device: {_zipped([scalar(each.mesh) for each in own])}",
                    f"    port: {_zipped([str(each.ports[lane]) for each in own])}",
                ]
    return lines


def _zipped(values: Sequence[str]) -> str:
    """One value for all names of an entry, or one for each."""
    return values[0] if len(set(values)) == 1 and not values[0].isdecimal() else f"[{', '.join(values)}]"


def _folded(name: str) -> str:
    return name if name[:1].isalpha() and ":" not in name and name.lower() not in _WORDS else json.dumps(name)


def _job(new: NewInventory) -> list[str]:
    lines = [f"  - name: {scalar(new.job)}", "    ranks:"]
    lines += [f"      - {_folded(name)}" for ring in new.rings for name in _in_few_words(ring)]
    lines.append("    links:")
    first = 0
    for ring in new.rings:
        lines.append(f"      - {{kind: ring, ranks: {first}-{first + len(ring) - 1}}}")
        first += len(ring)
    return lines


def _in_few_words(names: Sequence[str]) -> list[str]:
    """The names in the same order, folded if that keeps the order."""
    folded = fold(names)
    try:
        if [each for name in folded for each in expand(name)] == list(names):
            return folded
    except FoldError:  # for example, the folded name is longer than a name may be
        pass
    return list(names)
