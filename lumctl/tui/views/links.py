"""The circuits between accelerators as links, and a line about an accelerator; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from lumctl.health.observation import Observation
from lumctl.health.states import SEVERITY, CircuitHealth, State, is_fault
from lumctl.inventory.model import Role
from lumctl.printable import counted
from lumctl.tui.look.marks import QUIET_STYLE, STATE_STYLES, Marks, power
from lumctl.tui.panes.circuits import receivers


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """A circuit between two accelerators."""

    circuit: CircuitHealth
    a: str
    b: str

    def other(self, accelerator: str) -> str | None:
        """The accelerator at the other end; ``None`` if the link does not end at this one."""
        return {self.a: self.b, self.b: self.a}.get(accelerator)


def links_of(observation: Observation, rack: str | None = None) -> tuple[DrawnLink, ...]:
    """All links, or those with an end in a rack."""
    inventory, links = observation.inventory, []
    for circuit in observation.report.circuits.values():
        a, b = (inventory.transponders[end.transponder].accelerator for end in circuit.ends)
        if rack is None or rack in {inventory.accelerators[a].rack, inventory.accelerators[b].rack}:
            links.append(DrawnLink(circuit, a, b))
    return tuple(links)


def links_to_show(links: Sequence[DrawnLink], chosen: str | None) -> list[DrawnLink]:
    """The links of the chosen accelerator, then other links that are not ok, worst first; the rest is omitted."""
    own = [link for link in links if chosen is not None and link.other(chosen) is not None]
    rest = [link for link in links if link.circuit.state is not State.OK and link not in own]
    return own + sorted(rest, key=lambda link: -SEVERITY.index(link.circuit.state))


def link_line(link: DrawnLink, marks: Marks, *, chosen: str | None) -> Text:
    """A line about a link: state, ends, and received power; dimmed if ok and not of the chosen accelerator."""
    circuit, own = link.circuit, chosen is not None and link.other(chosen) is not None
    mark = marks.arrow(duplex=circuit.direction == "duplex")
    text = Text("* " if own else "  ", no_wrap=True, end="")
    text.append(f"{marks.state(circuit.state):<11}", style=STATE_STYLES[circuit.state])
    light = " / ".join(power(end.rx_power_dbm) for end in receivers(circuit))
    quiet = QUIET_STYLE if circuit.state is State.OK else ""
    text.append(f" {link.a} {mark} {link.b}  {circuit.id}  rx {light} dBm", style="bold" if own else quiet)
    return text


def link_lines(links: Sequence[DrawnLink], chosen: str | None, marks: Marks) -> list[Text]:
    """A line for each link to show, and one with the number of other circuits, which are ok."""
    shown = links_to_show(links, chosen)
    lines = [link_line(link, marks, chosen=chosen) for link in shown]
    if others := len(links) - len(shown):
        are = "is" if others == 1 else "are"
        other = counted(others, "other circuits" if shown else "circuits")
        lines.append(Text(f"  {other} {are} ok", style=QUIET_STYLE, no_wrap=True, end=""))
    return lines


def summary(observation: Observation, accelerator: str, marks: Marks) -> Text:
    """A line about an accelerator: state, use, model, and the faults of it and its lanes."""
    written, report = observation.inventory.accelerators[accelerator], observation.report
    health = report.accelerators.get(accelerator)
    state = health.state if health is not None else State.UNKNOWN
    text = Text(no_wrap=True, end="").append(f" {accelerator}  ", "bold")
    text.append(marks.state(state), style=STATE_STYLES[state])
    text.append(f"  {_purpose(observation, accelerator)}, {written.model}")
    if health is not None and health.findings:
        text.append(f"; {health.findings[0].evidence}")
    for lane in observation.inventory.transponders_of(accelerator):
        link = report.links.get(lane.id)
        if link is not None and is_fault(link.state) and link.findings:
            text.append("; ").append(f"{lane.id}: {link.findings[0].evidence}", STATE_STYLES[link.state])
    return text


def _purpose(observation: Observation, accelerator: str) -> str:
    """The use of an accelerator: job and rank, ``spare``, or ``out`` (of service)."""
    place = observation.place_of(accelerator)
    if place is not None:
        return f"{place[0]}/{place[1]}"
    return "spare" if observation.role_of(accelerator) is Role.SPARE else "out"
