"""``lumctl fleet``: save the output of the hosts' commands as files."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import UnreachableError
from lumctl.inventory.problems import require_known

if TYPE_CHECKING:
    from lumctl.context import Context
    from lumctl.fleet.bundle.writer import HostCapture
    from lumctl.fleet.probes import Probe
    from lumctl.inventory.model import Inventory

app = noun_app(NOUNS["fleet"].help)

_COLUMNS = (
    OutputColumn("HOST", "host"),
    OutputColumn("CAPTURE", "result"),
    OutputColumn("FILES", "files", right=True),
    OutputColumn("PROBLEM", "problem"),
)


@app.callback()
def fleet() -> None:
    """Keep the noun a group: Typer would merge a single verb into the noun, and the verb's name would be lost."""


@verb(app, "capture")
def capture(
    cx: Invocation,
    hosts: Annotated[list[str] | None, typer.Argument(metavar="HOST", help="By default all hosts.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The folder to write; by default a new one in the current folder."),
    ] = None,
) -> None:
    """Save the output of the hosts' probes, to be judged elsewhere with ``lumctl check --from-capture DIR``.

    All hosts are read at the same time, over one SSH connection each; every probe has its own deadline, and a probe
    that hangs or is denied is recorded. DIR/HOST holds one file for each probe, and manifest.json: the time of the
    capture, the host's boot time, and how each probe ended: nvidia-smi.xml (nvidia-smi -q -x), nvlink.txt,
    nvlink-errors.txt and nvlink-traffic.txt (nvidia-smi nvlink -s, -e and -gt d), kernel.log (dmesg), net.tsv,
    infiniband.tsv and counters.tsv (files in /sys/class), lldp.json (lldpctl -f json), ethtool-IFACE.txt (ethtool -m),
    and data of the
    host: mounts.txt, df.txt, date.txt, crashes.txt (records of crashed kernels), services.txt (systemctl show of the
    services of GPUs), fabric-log.txt (the end of the fabric manager's log),
    capacity.txt (memory and processors) and adapters.tsv (PCI addresses of network cards). If the inventory configures
    exporters, their pages are dcgm.prom, node.prom, amd.prom and gpud.json.

    DIR must be empty or absent. Only this user can read it: it holds whole kernel logs, serial numbers and UUIDs of
    GPUs. It holds no key and no password.

    Exit code: 3 if a host could not be reached; the capture records that.
    """
    from lumctl.context import Context
    from lumctl.fleet.bundle.writer import prepare

    started = datetime.now(UTC)
    folder = out if out is not None else Path(f"lumctl-capture-{started:%Y%m%dT%H%M%SZ}")
    names = _known(cx.inventory, hosts or [])
    with Context(cx.inventory, cx.target) as context:
        # Before any host is read: a folder that cannot be used must not cost the readings.
        prepare(folder)
        captured = _capture(cx, context, names, folder, started.timestamp())
    _show(cx, folder, captured)
    lost = [one.manifest for one in captured if not one.manifest.reachable]
    if lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        raise UnreachableError(
            f"{lost[0].error or f'{lost[0].host}: no session'}{more}", hint=f"the other hosts are captured in {folder}"
        )


def _known(inventory: "Inventory", names: list[str]) -> list[str]:
    require_known("host", names, inventory.hosts)
    return list(dict.fromkeys(names)) or list(inventory.hosts)


def _capture(cx: Invocation, context: "Context", hosts: list[str], folder: Path, started: float) -> "list[HostCapture]":
    from lumctl import __version__
    from lumctl.fleet.bundle import writer
    from lumctl.fleet.bundle.capture import CaptureManifest

    about = CaptureManifest(
        taken_at=started,
        target=str(cx.target),
        lumctl=__version__,
        racks=tuple(dict.fromkeys(context.inventory.hosts[host].rack for host in hosts)),
        hosts=tuple(hosts),
        # Not sound: a capture is often taken because something does not fit any more.
        assignment=context.assignment(sound=False),
    )
    probes = {host: shell_probes(context, host) for host in hosts}
    accelerator_probes = {host: context.inventory.hosts[host].probe for host in hosts}
    return writer.capture(
        context.fleet,
        probes,
        folder,
        about,
        accelerator_probes=accelerator_probes,
        now=context.now,
        narrate=cx.out.narrate,
    )


def shell_probes(context: "Context", host: str) -> "tuple[Probe, ...]":
    """The probes to run in a host's shell; empty if the host is read by exporters alone."""
    from lumctl.fleet.probes import probes_for

    if not context.inventory.hosts[host].readings.uses_shell:
        return ()
    interfaces = [lane.interface for lane in context.inventory.transponders.values() if lane.host == host]
    sudo, accelerators = context.endpoints.hosts[host].ssh.sudo, context.inventory.hosts[host].probe
    return probes_for(interfaces, sudo=sudo, accelerators=accelerators)


def _show(cx: Invocation, folder: Path, captured: "list[HostCapture]") -> None:
    from lumctl.fleet.bundle.writer import problems_of

    if cx.out.format is OutputFormat.NAME:
        cx.out.names([str(folder)])
    elif cx.out.structured:
        documents: list[dict[str, Any]] = [{**asdict(one.manifest), "files": sorted(one.files)} for one in captured]
        cx.out.document("capture", {"folder": str(folder), "hosts": documents})
    else:
        rows = [
            {
                "host": one.manifest.host,
                "result": "captured" if one.manifest.reachable else "unreachable",
                "files": len(one.files),
                "problem": one.manifest.error or "; ".join(problems_of(one.manifest)),
            }
            for one in captured
        ]
        cx.out.table(_COLUMNS, rows)
        cx.out.narrate(f"wrote {folder}; judge it with: lumctl check --from-capture {folder}")
