"""Racks, hosts with their accelerators and probes, from the document to the model."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from lumctl.inventory.document import AcceleratorEntry, Document, ExportersEntry, HostEntry, SshEntry
from lumctl.inventory.entry import Entry
from lumctl.inventory.exporters import EXPORTER_KINDS, Exporter, ReadingSource
from lumctl.inventory.model import NVIDIA_SMI, Accelerator, Host, Rack, Role, SshSettings, Thresholds
from lumctl.inventory.probe_times import PROBE_TIMES, READ_RARELY, ProbeTimes
from lumctl.inventory.problems import Mark, Problems
from lumctl.inventory.scope import Scope
from lumctl.inventory.store_urls import complaints, is_url
from lumctl.offers import PROBES, offered


def tied_of(group: AcceleratorEntry, templates: list[str], host: str, scope: Scope) -> list[str] | None:
    """The tie's name for each accelerator of an entry in one host; ``None`` if they are not tied."""
    if group.tied is None:
        return None
    mark = group.mark("tied")
    written = scope.texts(group, "tied", templates)
    filled = [scope.fill(text, mark, "host", host) for text in written or ()]
    return [text for text in filled if text] if filled and all(filled) else None


def note_tie(tied: str, accelerator: str, host: str, mark: Mark, scope: Scope) -> None:
    """Remember tied accelerators until all of them are known."""
    scope.ties.setdefault(tied, []).append((accelerator, host, mark))


def check_ties(scope: Scope) -> None:
    """Check that tied accelerators are in one host, and that there are at least two."""
    for tied, members in scope.ties.items():
        accelerator, host, mark = members[0]
        other = next(((where, at) for _, where, at in members if where != host), None)
        if other is not None:
            scope.problems.add(
                other[1],
                f"tie {tied!r} has accelerators of {host} and of {other[0]}, expected those of one host",
                'include the host in its name: "{host}-board"',
            )
        elif len(members) == 1:
            scope.once("lone tie", mark, f"tie {tied!r} has {accelerator} alone, expected two or more")


_WITH_PORT = re.compile(r"(?P<host>[^:\[\]]+|\[[^\]]*\]):(?P<port>[0-9]+)")


def resolve_racks(document: Document, scope: Scope) -> None:
    """Fill ``scope.racks``."""
    for name, entry in document.racks.items():
        scope.is_name(name, document.item_mark("racks", name))
        store = entry.store if entry else None
        if entry and store and not is_url(store):
            store = str(scope.path(store, entry.mark("store")))
        elif entry and store:
            for found, hint in complaints(store):
                scope.problems.add(entry.mark("store"), found, hint)
        scope.racks[name] = Rack(name, entry.location if entry else None, store)


def resolve_gateways(document: Document, scope: Scope) -> None:
    """Add the places of gateways to ``scope.racks``, once the hosts are known."""
    for name, entry in document.racks.items():
        if entry is None:
            continue
        if entry.gateway is not None:
            path = scope.path(entry.gateway, entry.mark("gateway"))
            scope.racks[name] = replace(scope.racks[name], gateway=path, gateway_via=entry.gateway_via)
        if entry.gateway_via is None:
            continue
        scope.refer("host", entry.gateway_via, scope.hosts, entry.mark("gateway_via"))
        if entry.gateway is None and not entry.cut("gateway"):
            scope.problems.add(entry.mark("gateway_via"), "found gateway_via without the key gateway")


def resolve_hosts(document: Document, scope: Scope) -> None:
    """Fill ``scope.hosts`` and ``scope.accelerators``."""
    for entry in document.hosts:
        names = scope.expand(entry.name, entry.mark("name"))
        if names is None:
            scope.doubts.names.add(entry.name)
            for group in entry.accelerators:
                scope.doubts.names.add(group.id)
            continue
        ssh = _ssh(document, entry, scope)
        racks = scope.racks_of(entry, names)
        addresses = scope.texts(entry, "address", names) or names
        mounts, probe = _mounts(entry, scope), _probe(entry, scope)
        readings = resolve_readings(document, entry, scope)
        for at, (name, rack, address) in enumerate(zip(names, racks, addresses, strict=True)):
            _check_address(address, entry.mark("address", at, len(names)), scope)
            if scope.define("host", name, entry.mark("name")):
                filled = scope.fill(address, entry.mark("address"), "name", name)
                where = filled or name
                scope.hosts[name] = Host(
                    name,
                    rack,
                    where,
                    ssh,
                    mounts=mounts,
                    rdma_ports=entry.rdma_ports,
                    probe=probe,
                    readings=readings,
                    exporters=resolve_exporters(document, entry, name, where, scope) if readings.uses_exporters else (),
                )
        _resolve_accelerators(entry, dict(zip(names, racks, strict=True)), scope)


def _check_address(address: str, mark: Mark, scope: Scope) -> None:
    """Check that an address has no port, which belongs to the SSH settings. Several colons are an IPv6 address."""
    if any(character.isspace() or not character.isprintable() for character in address):
        scope.once("address", mark, f"found {address!r}, expected a host name or an IP address")
        return
    found = _WITH_PORT.fullmatch(address)
    if found is not None:
        scope.once(
            "port",
            mark,
            f"found {address!r}, expected an address without a port",
            f'write address: "{found["host"].strip("[]")}" and ssh: {{port: {found["port"]}}}',
        )


def _mounts(entry: HostEntry, scope: Scope) -> tuple[str, ...]:
    """The mounts' paths as the kernel writes them: absolute, without a slash at the end."""
    for at, path in enumerate(entry.mounts):
        if not path.startswith("/"):
            mark = entry.mark("mounts", at, len(entry.mounts))
            scope.once("mounts", mark, f"found {path!r}, expected an absolute path such as /data")
    return tuple(dict.fromkeys(path.rstrip("/") or "/" for path in entry.mounts))


def _probe(entry: HostEntry, scope: Scope) -> str:
    """The name of the probe that reads the accelerators. The check that it is installed does not import it."""
    if entry.probe is None or entry.probe == NVIDIA_SMI:
        return NVIDIA_SMI
    names = [NVIDIA_SMI, *(offer.name for offer in offered(PROBES))]
    if entry.probe not in names:
        scope.problems.unknown(entry.mark("probe"), "probe", entry.probe, names, listed=True)
    return entry.probe


def _ssh(document: Document, entry: HostEntry, scope: Scope) -> SshSettings:
    """A host's SSH settings. Its own settings override the defaults of the file."""
    common = document.defaults.ssh if document.defaults else None
    return SshSettings(**_overlaid([layer for layer in (entry.ssh, common) if layer], SshEntry.model_fields, scope))


def _overlaid(layers: Iterable[Entry], keys: Iterable[str], scope: Scope) -> dict[str, Any]:
    """The value of each key in the first layer that has one; files as paths."""
    said: dict[str, Any] = {}
    for layer in layers:
        for key in keys:
            value = getattr(layer, key)
            if value is not None and key not in said:
                said[key] = scope.path(value, layer.mark(key)) if key.endswith("_file") else value
    return said


def _resolve_accelerators(entry: HostEntry, rack_of: dict[str, str], scope: Scope) -> None:
    position = 0
    for group in entry.accelerators:
        templates = scope.expand(group.id, group.mark("id"))
        if templates is None:
            scope.doubts.names.add(group.id)
            continue
        for host, rack in rack_of.items():
            for accelerator in _accelerators(group, templates, host, rack, position, scope):
                scope.accelerators[accelerator.id] = accelerator
        position += len(templates)


def _accelerators(
    group: AcceleratorEntry, templates: list[str], host: str, rack: str, position: int, scope: Scope
) -> Iterator[Accelerator]:
    """The accelerators of one entry in one host. ``position`` is the number of accelerators in earlier entries."""
    indices = scope.numbers(group, "index", templates) if group.index is not None else None
    pcis = scope.texts(group, "pci", templates) if group.pci is not None else None
    uuids = scope.texts(group, "uuid", templates) if group.uuid is not None else None
    burned_in = _dates(group, templates, scope)
    tied = tied_of(group, templates, host, scope)
    _check_reserved(group, scope)
    for at, template in enumerate(templates):
        mark = group.mark("id")
        name = scope.fill(template, mark, "host", host)
        if name is None:
            scope.doubts.names.add(group.id)
            return
        accelerator = Accelerator(
            id=name,
            host=host,
            rack=rack,
            model=group.model,
            memory_gib=group.memory_gib,
            role=group.role,
            index=indices[at] if indices else position + at,
            pci=_short_pci(pcis[at]) if pcis else None,
            uuid=uuids[at] if uuids else None,
            burned_in=burned_in[at] if burned_in else None,
            reserved=group.reserved,
            reserved_for=group.reserved_for,
            tied=tied[at] if tied else None,
            nvlinks=group.nvlinks,
        )
        if not scope.define("accelerator", accelerator.id, mark):
            continue
        only = [("index", f"index {accelerator.index} of {host}")]
        if accelerator.pci:
            only.append(("pci", f"PCI address {accelerator.pci} of {host}"))
        if accelerator.uuid:
            only.append(("uuid", f"UUID {accelerator.uuid}"))
        for key, what in only:
            scope.take(what, accelerator.id, group.mark(key, at, len(templates)))
        if accelerator.tied is not None:
            note_tie(accelerator.tied, accelerator.id, host, group.mark("tied", at, len(templates)), scope)
        yield accelerator


def _dates(group: AcceleratorEntry, templates: list[str], scope: Scope) -> list[date] | None:
    """The burn-in date of each accelerator; the entry has one for each or one for all."""
    written = scope.texts(group, "burned_in", templates) if group.burned_in is not None else None
    try:
        return [date.fromisoformat(text) for text in written] if written else None
    except ValueError as error:
        scope.once("date", group.mark("burned_in"), f"not a valid date ({error}), expected YYYY-MM-DD")
        return None


def _check_reserved(group: AcceleratorEntry, scope: Scope) -> None:
    """Check that only spares are reserved, and with only one of the two keys."""
    for key in ("reserved", "reserved_for"):
        if getattr(group, key) and group.role is not Role.SPARE:
            scope.once(key, group.mark(key), f"found {key!r} for an accelerator that is {group.role}, expected a spare")
    if group.reserved and group.reserved_for:
        scope.once("reserved both", group.mark("reserved"), "found both 'reserved' and 'reserved_for', expected one")


def check_reservations(document: Document, scope: Scope) -> None:
    """Check that the jobs for which spares are reserved exist. Jobs are read after accelerators, so this comes last."""
    for host in document.hosts:
        for group in host.accelerators:
            if group.reserved_for is not None:
                scope.refer("job", group.reserved_for, scope.jobs, group.mark("reserved_for"))


def _short_pci(written: str) -> str:
    """A PCI address in lower case with a domain of four digits, as the kernel prints it; nvidia-smi prints eight."""
    domain, rest = written.lower().split(":", 1)
    return f"{domain[-4:]}:{rest}"


def resolve_probes(document: Document, thresholds: Thresholds, problems: Problems) -> dict[str, ProbeTimes]:
    """When each kind of probe runs. Times that would let readings become stale between two runs are reported."""
    found = dict(PROBE_TIMES)
    for kind, usual in PROBE_TIMES.items():
        entry = getattr(document.probes, kind, None)
        if entry is None:
            continue
        written = entry.model_dump(exclude_none=True)
        times = found[kind] = replace(usual, **written)
        # An answer may take its whole time limit, so a reading can be as old as both together.
        if kind not in READ_RARELY and times.every_s + times.deadline_s > thresholds.stale_after_s:
            problems.add(
                entry.mark("every_s" if "every_s" in written else "deadline_s"),
                f"probes.{kind}: every_s {times.every_s:g} and deadline_s {times.deadline_s:g} are together more than "
                f"thresholds.stale_after_s {thresholds.stale_after_s:g}",
                "lumctl ignores readings older than that; make stale_after_s larger",
            )
    return found


_USUAL = ("dcgm", "node")
"""The exporters that are read if the inventory names none."""


_LOGIN = ("user", "secret_file", "secret_variable", "ca_file")


_URL = re.compile(
    r"(?P<origin>(?P<scheme>https?)://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?)(?P<path>/[!-~]*)?"
)


_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


_MOST_PORT = 65535


def resolve_readings(document: "Document", entry: "HostEntry", scope: "Scope") -> ReadingSource:
    """The source of readings for the hosts of an entry: from the entry itself, otherwise the default of the file."""
    common = document.defaults.readings if document.defaults else None
    readings = ReadingSource(entry.readings or common or ReadingSource.SHELL)
    if entry.exporters is not None and not readings.uses_exporters and not entry.cut("readings"):
        found = "found 'exporters' for a host whose readings come from its shell"
        scope.once("exporters", entry.mark("exporters"), found, "add readings: prometheus or readings: both")
    for group in entry.accelerators if readings is ReadingSource.PROMETHEUS else ():
        if group.pci is None and group.uuid is None and not group.cut("pci", "uuid"):
            found = "key 'pci' or 'uuid' is missing here: exporters do not print the minor number of a GPU"
            scope.once("exporters key", group.mark("id"), found)
    return readings


def resolve_exporters(
    document: "Document", entry: "HostEntry", name: str, address: str, scope: "Scope"
) -> tuple[Exporter, ...]:
    """The exporters of one host. Kinds that its entry names replace the default kinds; other keys override defaults."""
    common = document.defaults.exporters if document.defaults else None
    layers = [layer for layer in (entry.exporters, common) if layer is not None]
    login = _overlaid(layers, _LOGIN, scope)
    naming = next((layer for layer in layers if any(getattr(layer, kind) is not None for kind in EXPORTER_KINDS)), None)
    if naming is None:
        return tuple(_exporter(kind, _origin(kind, address), "", login) for kind in _USUAL)
    found: list[Exporter] = []
    for kind in EXPORTER_KINDS:
        where = getattr(naming, kind)
        if isinstance(where, int):
            found.append(_exporter(kind, _origin(kind, address, where), "", login))
        elif where is not None and (place := _place(naming, kind, where, name, address, scope)) is not None:
            found.append(_exporter(kind, *place, login))
    return tuple(found)


def _exporter(kind: str, origin: str, path: str, login: Mapping[str, Any]) -> Exporter:
    return Exporter(kind, origin, path or EXPORTER_KINDS[kind].path, **login)


def _origin(kind: str, address: str, port: int | None = None) -> str:
    usual = EXPORTER_KINDS[kind]
    return f"{usual.scheme}://{_in_url(address)}:{port or usual.port}"


def _in_url(address: str) -> str:
    """An address for use in a URL: an IPv6 address gets brackets."""
    return f"[{address}]" if ":" in address else address


def _place(
    entry: "ExportersEntry", kind: str, written: str, name: str, address: str, scope: "Scope"
) -> tuple[str, str] | None:
    """Origin and path of a URL, with ``{name}`` and ``{address}`` replaced by the host's name and address."""
    mark = entry.mark(kind)
    for other in _PLACEHOLDER.findall(written):
        if other not in {"name", "address"}:
            scope.once("exporter", mark, f"found '{{{other}}}', expected '{{address}}' or '{{name}}'")
            return None
    parts = _URL.fullmatch(written.replace("{name}", name).replace("{address}", _in_url(address)))
    if parts is None or not 0 < int(parts["port"] or 1) <= _MOST_PORT:
        # A password in the URL must not be printed, so it is left out.
        shown = re.sub(r"//[^/]*@", "//...@", written)
        hint = "the user and the place of the secret have their own keys: user, secret_file, secret_variable"
        expected = f"expected a port or a URL such as http://{{address}}:{EXPORTER_KINDS[kind].port}/metrics"
        scope.once("exporter", mark, f"found {shown!r}, {expected}", hint if "@" in written else None)
        return None
    return parts["origin"], parts["path"] or ""
