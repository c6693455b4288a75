"""What ``lumctl status`` prints: the status document as a headline and tables."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lumctl.cli.output import Output, OutputColumn, OutputFormat
from lumctl.health.states import SEVERITY, State
from lumctl.inventory.folded_names import fold

Row = Mapping[str, Any]

HOSTS = (
    OutputColumn("STATE", "state"),
    OutputColumn("HOSTS", "names"),
    OutputColumn("COUNT", "count", right=True),
    OutputColumn("AGE s", "age", right=True),
    OutputColumn("FINDING", "finding"),
)
DEVICES = (OutputColumn("STATE", "state"), OutputColumn("DEVICE", "id"), OutputColumn("FINDING", "finding"))
ACCELERATORS = (
    OutputColumn("STATE", "state"),
    OutputColumn("ACCELERATOR", "id"),
    OutputColumn("HOST", "host", wide=True),
    OutputColumn("MODEL", "model", wide=True),
    OutputColumn("ROLE", "role"),
    OutputColumn("JOB/RANK", "place"),
    OutputColumn("TEMP C", "temperature", right=True),
    OutputColumn("UTIL %", "utilization", right=True),
    OutputColumn("MEMORY GiB", "memory", right=True),
    OutputColumn("POWER W", "power", wide=True, right=True),
    OutputColumn("ECC", "ecc", right=True),
    OutputColumn("PCI", "pci", wide=True),
    OutputColumn("SOURCE", "source", wide=True),
    OutputColumn("AGE s", "age", right=True),
    OutputColumn("FINDING", "finding"),
)
LINKS = (
    OutputColumn("STATE", "state"),
    OutputColumn("LINK", "id"),
    OutputColumn("HOST", "host"),
    OutputColumn("INTERFACE", "interface"),
    OutputColumn("PORT", "port"),
    OutputColumn("CARRIER", "carrier"),
    OutputColumn("RX dBm", "rx", right=True),
    OutputColumn("TX dBm", "tx", right=True),
    OutputColumn("AGE s", "age", right=True),
    OutputColumn("FINDING", "finding"),
)
CIRCUITS = (
    OutputColumn("STATE", "state"),
    OutputColumn("CIRCUIT", "id"),
    OutputColumn("DEVICE", "device", wide=True),
    OutputColumn("PORTS", "ports", wide=True),
    OutputColumn("FROM", "a"),
    OutputColumn("TO", "b"),
    OutputColumn("RX dBm", "rx", right=True),
    OutputColumn("HEARS", "hears"),
    OutputColumn("LOSS dB", "loss", right=True),
    OutputColumn("AGE s", "age", wide=True, right=True),
)
FINDINGS = (
    OutputColumn("STATE", "state"),
    OutputColumn("COMPONENT", "component"),
    OutputColumn("RULE", "rule", wide=True),
    OutputColumn("EVIDENCE", "evidence"),
    OutputColumn("ADVICE", "advice"),
)
ACKNOWLEDGED = OutputColumn("ACKNOWLEDGED", "acknowledged")
INCIDENTS = (
    OutputColumn("STATE", "state"),
    OutputColumn("CAUSE", "cause"),
    OutputColumn("RULE", "rule", wide=True),
    OutputColumn("SINCE", "since"),
    OutputColumn("WHAT", "summary"),
    OutputColumn("TOUCHES", "count", right=True),
)
MAINTENANCE = (
    OutputColumn("MAINTENANCE OF", "component"),
    OutputColumn("FROM", "starts"),
    OutputColumn("UNTIL", "ends"),
    OutputColumn("BY", "by"),
    OutputColumn("COMMENT", "comment"),
    OutputColumn("ID", "id", wide=True),
)


def unfinished_line(run: str, target: str) -> str:
    """The message about an interrupted or half-done run, with the commands that finish it."""
    from lumctl.store import ways_to_finish

    return f"run {run} is unfinished: lumctl swap show {run} --target {target}; then {ways_to_finish(run, target)}"


def print_status(out: Output, document: Row, *, findings_first: bool = False) -> None:
    """Print a status document. ``findings_first`` suits a screen that is cut at the bottom."""
    out.text(headline(document))
    out.text(summary_line(document["summary"]))
    for run in document["unfinished_runs"]:
        out.text(unfinished_line(run, document["target"]))
    tables: list[tuple[str, Sequence[OutputColumn], list[Row]]] = [
        ("hosts", HOSTS, host_rows(document["hosts"])),
        ("devices", DEVICES, [_with_finding(device) for device in document["devices"]]),
        ("accelerators", ACCELERATORS, accelerator_rows(document)),
        ("circuits", CIRCUITS, [_circuit_row(circuit) for circuit in document["circuits"]]),
    ]
    if out.format is OutputFormat.WIDE:
        tables.insert(3, ("links", LINKS, [_link_row(link) for link in document["links"]]))
    findings = finding_rows(document)
    known = (ACKNOWLEDGED,) if any(row["acknowledged"] for row in findings) else ()
    told: list[tuple[str, Sequence[OutputColumn], list[Row]]] = [
        ("maintenance", MAINTENANCE, [window_row(window) for window in document["maintenance"]]),
        ("incidents", INCIDENTS, [_incident_row(incident) for incident in document["incidents"]]),
        ("findings", (*FINDINGS, *known), findings),
    ]
    tables = [*told, *tables] if findings_first else [*tables, *told]
    for title, columns, rows in tables:
        if rows:
            out.text()
            out.table(columns, rows, title=title)


def headline(document: Row) -> str:
    """Rack, target and time: the headline of every screen."""
    at = datetime.fromtimestamp(document["at"], tz=UTC).astimezone().isoformat(sep=" ", timespec="seconds")
    return (
        f"{', '.join(document['racks'])}  target: {document['target']}  {at}  read in {document['collection_s']:.2f} s"
    )


def summary_line(summary: Mapping[str, Mapping[str, int]]) -> str:
    """Counts by group, worst state first."""
    parts = []
    for name, counts in summary.items():
        told = [f"{counts[state]} {state}" for state in reversed(SEVERITY) if counts[state]]
        if told:
            parts.append(f"{name}: {', '.join(told)}")
    return "; ".join(parts)


def host_rows(hosts: Sequence[Row]) -> list[Row]:
    """Hosts alike in state and finding share a row: ``h[01-16]``."""
    alike: dict[tuple[str, str], list[Row]] = {}
    for host in hosts:
        alike.setdefault((host["state"], worst_evidence(host)), []).append(host)
    return [
        {
            "state": state,
            "names": ",".join(fold(host["id"] for host in members)),
            "count": len(members),
            "age": _age(max((h["age_s"] for h in members if h["age_s"] is not None), default=None)),
            "finding": evidence,
        }
        for (state, evidence), members in alike.items()
    ]


def accelerator_rows(document: Row) -> list[Row]:
    """One row for each accelerator."""
    hosts = {host["id"]: host for host in document["hosts"]}
    return [_accelerator_row(accelerator, hosts[accelerator["host"]]) for accelerator in document["accelerators"]]


def _accelerator_row(accelerator: Row, host: Row) -> Row:
    readings = accelerator["readings"]
    used, total = readings["memory_used_mib"], readings["memory_total_mib"]
    because = worst_evidence(accelerator)
    if not because and accelerator["state"] == State.UNKNOWN:
        because = f"{host['id']}: {worst_evidence(host)}"
    return {
        **accelerator,
        "place": f"{accelerator['job']}/{accelerator['rank']}" if accelerator["job"] else None,
        "temperature": _number(readings["temperature_c"], 0),
        "utilization": _number(readings["utilization_percent"], 0),
        "memory": f"{used / 1024:.0f}/{total / 1024:.0f}" if used is not None and total else None,
        "power": _number(readings["power_w"], 0),
        "ecc": readings["ecc_volatile_uncorrectable"],
        "pci": readings["pci"],
        "source": readings["source"],
        "age": _age(accelerator["age_s"]),
        "finding": because,
    }


def _link_row(link: Row) -> Row:
    readings = link["readings"]
    return {
        **_with_finding(link),
        "port": f"{link['device']}:{'/'.join(map(str, link['ports']))}",
        "carrier": readings["operstate"],
        "rx": _number(readings["rx_power_dbm"], 1),
        "tx": _number(readings["tx_power_dbm"], 1),
        "age": _age(link["age_s"]),
    }


def _circuit_row(circuit: Row) -> Row:
    a, b = circuit["ends"]
    receivers = [end for end in circuit["ends"] if end["expected"] is not None]
    as_meant = all(end["hears"] == end["expected"] for end in receivers)
    return {
        **circuit,
        "a": a["lane"],
        "b": b["lane"],
        "ports": f"{a['port']}:{b['port']}",
        "rx": " / ".join(_number(end["rx_power_dbm"], 1) or "-" for end in receivers),
        "hears": "as intended" if as_meant else " / ".join(end["hears"] or "not shown" for end in receivers),
        "loss": _number(circuit["loss_db"], 1),
        "age": _age(circuit["age_s"]),
    }


def _incident_row(incident: Row) -> Row:
    return {**incident, "since": clock(incident["since"]), "count": len(incident["members"])}


def window_row(window: Row) -> Row:
    """One maintenance window; a future one is marked."""
    soon = "" if window["open"] else " (to come)"
    return {**window, "starts": f"{clock(window['starts'])}{soon}", "ends": clock(window["ends"])}


def clock(at: float | None) -> str | None:
    """A moment in the reader's own time zone, to the minute."""
    return None if at is None else datetime.fromtimestamp(at, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def finding_rows(document: Row) -> list[Row]:
    """Every finding, gravest first."""
    everything = [
        finding
        for group in ("hosts", "devices", "accelerators", "links", "circuits")
        for component in document[group]
        for finding in component["findings"]
    ]
    return sorted(everything, key=lambda finding: (-SEVERITY.index(State(finding["state"])), -finding["gravity"]))


def worst_evidence(component: Row) -> str:
    """What the first of a component's findings saw, marked if that is known; else its maintenance, if any."""
    findings = component["findings"]
    if not findings:
        return f"maintenance: {component['maintenance']}" if component["maintenance"] else ""
    mark = "in maintenance: " if component["maintenance"] else "acknowledged: " if findings[0]["acknowledged"] else ""
    return f"{mark}{findings[0]['evidence']}"


def _with_finding(component: Row) -> dict[str, Any]:
    return {**component, "finding": worst_evidence(component)}


def _number(value: float | None, digits: int) -> str | None:
    return None if value is None else f"{value:.{digits}f}"


def _age(seconds: float | None) -> str | None:
    return _number(seconds, 1)
