"""A report in Prometheus' text format, for the textfile collector of node_exporter."""

from collections.abc import Iterable, Iterator, Mapping

from lumctl.health.states import HealthReport, State


def prometheus_text(report: HealthReport, *, target: str, collection_s: float) -> str:
    """All states, reading times and receive powers of a report.

    Times are written as time stamps, not as ages: a file that is no longer renewed must be seen to grow old.
    """
    components = [
        (name.removesuffix("s"), health) for name, group in report.groups().items() for health in group.values()
    ]
    states = (
        ({"target": target, "kind": kind, "id": health.id, "state": state.value}, float(health.state is state))
        for kind, health in components
        for state in State
    )
    times = (
        ({"target": target, "kind": kind, "id": health.id}, health.read_at)
        for kind, health in components
        if health.read_at is not None
    )
    powers = (
        ({"target": target, "circuit": circuit.id, "lane": end.transponder}, end.rx_power_dbm)
        for circuit in report.circuits.values()
        for end in circuit.ends
        if end.rx_power_dbm is not None
    )
    here = {"target": target}
    lines = [
        *_family("lumctl_component_state", "Whether a component is in a state (1) or not (0).", states),
        *_family("lumctl_component_read_timestamp_seconds", "When a component was last read.", times),
        *_family("lumctl_circuit_rx_power_dbm", "Light received at one end of a circuit.", powers),
        *_family("lumctl_check_timestamp_seconds", "When this file was made.", [(here, report.at)]),
        *_family("lumctl_check_collection_seconds", "How long the collection took.", [(here, collection_s)]),
    ]
    return "\n".join(lines) + "\n"


def _family(name: str, text: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"
    for labels, value in samples:
        written = ",".join(f'{label}="{_escaped(content)}"' for label, content in labels.items())
        yield f"{name}{{{written}}} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    special = {float("inf"): "+Inf", float("-inf"): "-Inf"}
    return special.get(value) or ("NaN" if value != value else f"{value:.15g}")  # noqa: PLR0124 - NaN differs from itself
