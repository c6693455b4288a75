"""What ``lumctl status`` prints: the status document as a headline and tables."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lumctl.cli.output import COLOURS, Output, OutputColumn, OutputFormat
from lumctl.cli.remedies import remedy_lines, row_lines
from lumctl.cli.spare_queue import waiting_words
from lumctl.health.observation import is_new, orders_text
from lumctl.health.remedy import after_a_swap
from lumctl.health.states import SEVERITY, State
from lumctl.inventory.folded_names import fold
from lumctl.printable import counted
from lumctl.time_text import age_text, moment_text, seconds_of

Row = Mapping[str, Any]

HOSTS = (
    OutputColumn("STATE", "state"),
    OutputColumn("HOSTS", "names"),
    OutputColumn("COUNT", "count", right=True),
    OutputColumn("AGE", "age", right=True),
    OutputColumn("FINDING", "finding"),
)
DEVICES = (OutputColumn("STATE", "state"), OutputColumn("DEVICE", "id"), OutputColumn("FINDING", "finding"))
ACCELERATORS = (
    OutputColumn("STATE", "state"),
    OutputColumn("ACCELERATOR", "id"),
    OutputColumn("HOST", "host", wide=True),
    OutputColumn("MODEL", "model", wide=True),
    OutputColumn("ROLE", "role", gives_way=4),
    OutputColumn("JOB/RANK", "place"),
    OutputColumn("TEMP C", "temperature", right=True, gives_way=1),
    OutputColumn("UTIL %", "utilization", right=True, gives_way=2),
    OutputColumn("MEMORY GiB", "memory", right=True, gives_way=3),
    OutputColumn("POWER W", "power", wide=True, right=True),
    OutputColumn("ECC", "ecc", right=True, gives_way=6),
    OutputColumn("PCI", "pci", wide=True),
    OutputColumn("SOURCE", "source", wide=True),
    OutputColumn("AGE", "age", right=True, gives_way=5),
    OutputColumn("FINDING", "finding"),
)
LINKS = (
    OutputColumn("STATE", "state"),
    OutputColumn("LINK", "id"),
    OutputColumn("HOST", "host", gives_way=6),
    OutputColumn("INTERFACE", "interface", gives_way=4),
    OutputColumn("PORT", "port", gives_way=3),
    OutputColumn("CARRIER", "carrier", gives_way=2),
    OutputColumn("RX dBm", "rx", right=True),
    OutputColumn("TX dBm", "tx", right=True, gives_way=1),
    OutputColumn("AGE", "age", right=True, gives_way=5),
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
    OutputColumn("LOSS dB", "loss", right=True, gives_way=1),
    OutputColumn("AGE", "age", wide=True, right=True),
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
    OutputColumn("SINCE", "since", gives_way=2),
    OutputColumn("AGE", "age", right=True),
    OutputColumn("WHAT", "summary"),
    OutputColumn("TOUCHES", "count", right=True, gives_way=1),
)
MAINTENANCE = (
    OutputColumn("MAINTENANCE OF", "component"),
    OutputColumn("FROM", "starts", gives_way=1),
    OutputColumn("UNTIL", "ends"),
    OutputColumn("BY", "by", gives_way=2),
    OutputColumn("COMMENT", "comment"),
    OutputColumn("ID", "id", wide=True),
)


def unfinished_line(run: str, target: str) -> str:
    """The message about an interrupted or half-done run, with the commands that finish it."""
    from lumctl.store import ways_to_finish

    return f"run {run} is unfinished: lumctl swap show {run} --target {target}; then {ways_to_finish(run, target)}"


_BEGUN = frozenset({"since", "age"})
MOST_TO_DO = 8
"""Most faults under "to do" on a terminal; more faults usually have few causes, and the tables list all."""


def print_status(
    out: Output, document: Row, *, everything: bool = False, aim: Callable[[str], str] = lambda text: text
) -> None:
    """Print a status document: faults first, with the next command to type.

    On a terminal, rows that are ok are counted and not listed, unless ``everything`` is set. ``aim`` names inventory
    and target in the commands of a text.
    """
    folded = out.on_terminal and not everything
    out.text(out.wrapped(headline(document), "  "))
    whole = Counter(host["whole"] for host in document["hosts"])
    out.text(out.wrapped(summary_line({**document["summary"], "hosts": whole}, document["out_of_service"]), "  "))
    _print_to_do(out, document, aim, most=MOST_TO_DO if folded else None)
    tables: list[tuple[str, Sequence[OutputColumn], list[Row]]] = [
        ("incidents", *_incidents(document)),
        ("findings", *_findings(document)),
        ("maintenance", MAINTENANCE, [window_row(window) for window in document["maintenance"]]),
        ("hosts", HOSTS, host_rows(document)),
        ("devices", DEVICES, [_with_finding(device) for device in document["devices"]]),
        ("accelerators", ACCELERATORS, accelerator_rows(document)),
        ("circuits", CIRCUITS, [_circuit_row(circuit) for circuit in document["circuits"]]),
    ]
    if out.format is OutputFormat.WIDE:
        # Before the circuits.
        tables.insert(6, ("links", LINKS, [_link_row(link) for link in document["links"]]))
    left_out: list[str] = []
    for title, columns, rows in tables:
        shown = [row for row in rows if not (folded and _is_quiet(row))]
        if count := sum(row.get("count") or 1 for row in rows if folded and _is_quiet(row)):
            left_out.append(counted(count, title))
        if shown:
            out.text()
            out.table(columns, shown, title=title)
    if left_out:
        out.text()
        out.text(out.wrapped(f"ok and not listed: {', '.join(left_out)} (--all lists them)", "  "))


def _is_quiet(row: Row) -> bool:
    """Whether a row can be omitted: it is ok and has no finding."""
    return row.get("state") == State.OK and not row.get("finding") and not row.get("findings") and "cause" not in row


def _print_to_do(out: Output, document: Row, aim: Callable[[str], str], *, most: int | None) -> None:
    """Print each unfinished run, waiting job, fault and repair with the commands that resolve it, if there are any."""
    remedies = document["remedies"]
    if not (remedies or any(document[each] for each in ("unfinished_runs", "waiting", "stopped_jobs", "repairs"))):
        return
    out.text()
    out.styled("to do", "bold")
    for run in document["unfinished_runs"]:
        out.text(out.wrapped(f"  {aim(unfinished_line(run, document['target']))}", "    "))
    for row in document["waiting"]:
        out.text(out.wrapped(f"  {waiting_words(row)}", "    "))
        if row["command"]:
            out.text(f"      {row['command']}")
    for line in (line for row in document["stopped_jobs"] for line in row_lines(out, row)):
        out.text(line)
    for remedy in remedies[:most]:
        head, *rest = remedy_lines(out, remedy, "  ")
        out.styled(head, COLOURS[remedy["state"]])
        for line in rest:
            out.text(line)
    if more := len(remedies[most:]) if most is not None else 0:
        out.text(f"  and {counted(more, 'other faults')} (--all lists them)")
    for line in (line for row in document["repairs"] for line in row_lines(out, row)):
        out.text(line)


def _incidents(document: Row) -> tuple[Sequence[OutputColumn], list[Row]]:
    rows = [_incident_row(incident, document) for incident in document["incidents"]]
    columns = [column for column in INCIDENTS if column.key not in _BEGUN or any(row[column.key] for row in rows)]
    return columns, rows


def _findings(document: Row) -> tuple[Sequence[OutputColumn], list[Row]]:
    findings = finding_rows(document)
    known = (ACKNOWLEDGED,) if any(row["acknowledged"] for row in findings) else ()
    return (*FINDINGS, *known), findings


def headline(document: Row) -> str:
    """Rack, target and time: the headline of every screen."""
    at = moment_text(seconds_of(document["at"]))
    return (
        f"{', '.join(document['racks'])}  target: {document['target']}  {at}  read in {document['collection_s']:.2f} s"
    )


def summary_line(summary: Mapping[str, Mapping[str, int]], out_of_service: Mapping[str, int]) -> str:
    """The number of components by group and state, worst state first; of disabled accelerators also by order."""
    orders = orders_text(out_of_service)
    parts = []
    for name, counts in summary.items():
        told = {state: f"{counts[state]} {state}" for state in reversed(SEVERITY) if counts[state]}
        if orders and name == "accelerators" and State.DISABLED in told:
            told[State.DISABLED] += f" ({orders})"
        if told:
            parts.append(f"{name}: {', '.join(told.values())}")
    return "; ".join(parts)


def host_rows(document: Row) -> list[Row]:
    """Rows of hosts; those with equal state and finding share one (``h[01-16]``). The state includes accelerators."""
    alike: dict[tuple[str, str], list[Row]] = {}
    for host in document["hosts"]:
        evidence = worst_evidence(host)
        if host["whole"] != host["state"]:
            # The host itself answers well: its row must name the accelerator that makes it worse.
            bad = (a for a in document["accelerators"] if a["host"] == host["id"] and a["state"] == host["whole"])
            evidence = ", ".join(f"{accelerator['id']} is {host['whole']}" for accelerator in bad)
        alike.setdefault((host["whole"], evidence), []).append(host)
    return [
        {
            "state": state,
            "names": ", ".join(fold(host["id"] for host in members)),
            "count": len(members),
            "age": _age(max((h["age_s"] for h in members if h["age_s"] is not None), default=None)),
            "finding": evidence,
        }
        for (state, evidence), members in alike.items()
    ]


def accelerator_rows(document: Row) -> list[Row]:
    """One row for each accelerator; the document may lack its host."""
    hosts = {host["id"]: host for host in document["hosts"]}
    return [_accelerator_row(accelerator, hosts.get(accelerator["host"])) for accelerator in document["accelerators"]]


def _accelerator_row(accelerator: Row, host: Row | None) -> Row:
    readings = accelerator["readings"]
    used, total = readings["memory_used_mib"], readings["memory_total_mib"]
    because = worst_evidence(accelerator)
    # It is unknown because its host was not read: its row says so.
    if not because and accelerator["state"] == State.UNKNOWN and host is not None:
        evidence = worst_evidence(host)
        because = evidence if evidence.startswith(host["id"]) else f"{host['id']}: {evidence}"
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
        "device": ", ".join(circuit["devices"]),
        "ports": f"{a['port']}:{b['port']}",
        "rx": " / ".join(_number(end["rx_power_dbm"], 1) or "-" for end in receivers),
        "hears": "as intended" if as_meant else " / ".join(end["hears"] or "not shown" for end in receivers),
        "loss": _number(circuit["loss_db"], 1),
        "age": _age(circuit["age_s"]),
    }


def _incident_row(incident: Row, document: Row) -> Row:
    """One incident. If this reading was the first to find it, it may have begun at any time before: without a time."""
    since, now = seconds_of(incident["since"]), seconds_of(document["at"])
    is_known = not is_new(since, now, document["collection_s"])
    begun = {"since": moment_text(since), "age": age_text(now - since)} if is_known else {"since": None, "age": None}
    return {**incident, **begun, "count": len(incident["members"])}


def window_row(window: Row) -> Row:
    """One maintenance window; a future one is marked."""
    soon = "" if window["open"] else " (to come)"
    starts, ends = moment_text(seconds_of(window["starts"])), moment_text(seconds_of(window["ends"]))
    return {**window, "starts": f"{starts}{soon}", "ends": ends}


def finding_rows(document: Row) -> list[Row]:
    """Every finding, the worst first; of equal state those of a component together."""
    everything = [
        {**finding, "advice": after_a_swap(finding["advice"])} if component["state"] == State.DISABLED else finding
        for group in ("hosts", "devices", "accelerators", "links", "circuits")
        for component in document[group]
        for finding in component["findings"]
    ]
    everything.sort(key=lambda finding: (-SEVERITY.index(State(finding["state"])), -finding["gravity"]))
    first: dict[tuple[str, str], int] = {}
    for at, finding in enumerate(everything):
        first.setdefault((finding["state"], finding["component"]), at)
    return sorted(everything, key=lambda finding: first[finding["state"], finding["component"]])


def worst_evidence(component: Row) -> str:
    """The evidence of a component's first finding, marked if acknowledged or in maintenance; else its maintenance."""
    findings = component["findings"]
    if not findings:
        return f"maintenance: {component['maintenance']}" if component["maintenance"] else ""
    mark = "in maintenance: " if component["maintenance"] else "acknowledged: " if findings[0]["acknowledged"] else ""
    return f"{mark}{findings[0]['evidence']}"


def _with_finding(component: Row) -> dict[str, Any]:
    return {**component, "finding": worst_evidence(component)}


def _number(value: float | None, digits: int) -> str | None:
    return None if value is None else f"{value:z.{digits}f}"


def _age(seconds: float | None) -> str | None:
    return None if seconds is None else age_text(seconds)
