"""A rack as a picture: its accelerators in their places on the hosts, and what joins them; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from lumctl.health.observation import Observation
from lumctl.health.states import CircuitHealth, State
from lumctl.inventory.model import Accelerator, Role
from lumctl.tui.look.marks import QUIET_STYLE, STATE_STYLES, Marks, power
from lumctl.tui.panes.circuits import receivers

_WIDEST, _NARROWEST = 18, 8
LINK_MARGIN = 40
"""How many columns a link takes beside the names in it, at the most."""
LINES = 2
"""The lines of a host: state and id of each accelerator, and its use below."""


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """A circuit between two accelerators of a rack."""

    circuit: CircuitHealth
    a: str
    b: str

    def other(self, accelerator: str) -> str | None:
        """The accelerator that it joins with this one; ``None`` if it has no end here."""
        return {self.a: self.b, self.b: self.a}.get(accelerator)


@dataclass(frozen=True, slots=True)
class Emphasis:
    """The highlighted accelerators: the chosen one, and its peers."""

    chosen: str | None = None
    joined: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Places:
    """The accelerators of a rack by host, each host's in the order of their indices, and the links between them."""

    hosts: tuple[str, ...]
    by_host: tuple[tuple[Accelerator, ...], ...]
    links: tuple[DrawnLink, ...]

    @property
    def most(self) -> int:
        """How many accelerators the fullest host has."""
        return max(map(len, self.by_host), default=0)

    def joined_with(self, accelerator: str | None) -> frozenset[str]:
        """The accelerators that a circuit joins with this one."""
        others = (link.other(accelerator) for link in self.links) if accelerator else ()
        return frozenset(other for other in others if other is not None)

    def label_width(self) -> int:
        """How many columns the names of the hosts take, with the gap behind them."""
        return max(map(len, self.hosts), default=0) + 2

    def cell_width(self, columns: int) -> int:
        """How many columns an accelerator takes in a picture that is so wide, or wider where they do not fit."""
        room = (columns - self.label_width()) // max(self.most, 1)
        return max(_NARROWEST, min(_WIDEST, room))


def places_of(observation: Observation, rack: str) -> Places:
    """Where the accelerators of a rack are, and what joins them."""
    inventory = observation.inventory
    hosts = tuple(host.name for host in inventory.hosts.values() if host.rack == rack)
    by_host = tuple(tuple(sorted(inventory.accelerators_of(host), key=lambda each: each.index)) for host in hosts)
    here = {accelerator.id for group in by_host for accelerator in group}
    links = []
    for circuit in observation.report.circuits.values():
        a, b = (inventory.transponders[end.transponder].accelerator for end in circuit.ends)
        if {a, b} & here:
            links.append(DrawnLink(circuit, a, b))
    return Places(hosts, by_host, tuple(links))


def host_line(
    places: Places, observation: Observation, marks: Marks, emphasis: Emphasis, width: int, line: int
) -> Text:
    """One line of the picture: alternately a host's name with its accelerators, and the accelerators' use."""
    row, second = divmod(line, LINES)
    host = places.hosts[row]
    health = observation.report.hosts.get(host)
    text = Text(no_wrap=True, end="")
    label = "" if second else host
    text.append(label.ljust(places.label_width()), style=STATE_STYLES[health.state if health else State.UNKNOWN])
    cell = places.cell_width(width)
    for accelerator in places.by_host[row]:
        said = _purpose(observation, accelerator) if second else _mark(observation, accelerator, marks)
        state = _state(observation, accelerator.id)
        style = STATE_STYLES[state] if not second else QUIET_STYLE if said in {"spare", "out"} else ""
        beside = "*" if accelerator.id in emphasis.joined and not second else " "
        shown = f"{beside}{_cut(said, cell - 2, marks)}".ljust(cell - 1)
        text.append(shown, style=style)
        if accelerator.id == emphasis.chosen:
            text.stylize("reverse", len(text) - len(shown))
        text.append(" ")
    return text


def link_line(link: DrawnLink, marks: Marks, *, chosen: str | None) -> Text:
    """The ends of a circuit, its state, and its power; dimmed if it is not the chosen accelerator's."""
    circuit, own = link.circuit, chosen is not None and link.other(chosen) is not None
    mark = marks.arrow(duplex=circuit.direction == "duplex")
    text = Text("* " if own else "  ", no_wrap=True, end="")
    text.append(f"{marks.state(circuit.state):<11}", style=STATE_STYLES[circuit.state])
    light = " / ".join(power(end.rx_power_dbm) for end in receivers(circuit))
    text.append(f" {link.a} {mark} {link.b}  {circuit.id}  {light}", style="bold" if own else QUIET_STYLE)
    return text


def links_first(places: Places, chosen: str | None) -> Sequence[DrawnLink]:
    """All links, those of the chosen accelerator first, then those that are not well."""
    return sorted(
        places.links,
        key=lambda link: (chosen is None or link.other(chosen) is None, link.circuit.state is State.OK),
    )


def summary(observation: Observation, accelerator: str, marks: Marks) -> Text:
    """One accelerator in a line: state in words, model, and use."""
    written, state = observation.inventory.accelerators[accelerator], _state(observation, accelerator)
    text = Text(f" {accelerator}  ", style="bold", no_wrap=True, end="")
    text.append(marks.state(state), style=STATE_STYLES[state])
    health = observation.report.accelerators.get(accelerator)
    finding = f"; {health.findings[0].evidence}" if health is not None and health.findings else ""
    text.append(f"  {_purpose(observation, written)}, {written.model}{finding}", style="not bold")
    return text


def _state(observation: Observation, accelerator: str) -> State:
    health = observation.report.accelerators.get(accelerator)
    return health.state if health is not None else State.UNKNOWN


def _mark(observation: Observation, accelerator: Accelerator, marks: Marks) -> str:
    """Glyph and short name, without the part that equals the host's name."""
    short = accelerator.id.removeprefix(accelerator.host).lstrip("-/_.:") or accelerator.id
    return f"{marks.glyphs.get(_state(observation, accelerator.id), '?')} {short}"


def _purpose(observation: Observation, accelerator: Accelerator) -> str:
    """Job and rank, or that it is a spare or out of service."""
    place = observation.place_of(accelerator.id)
    if place is not None:
        return f"{place[0]}/{place[1]}"
    return "spare" if observation.role_of(accelerator.id) is Role.SPARE else "out"


def _cut(text: str, width: int, marks: Marks) -> str:
    """A text that does not fit, cut in its middle: a job is known by its beginning, a rank by its end."""
    if len(text) <= width:
        return text
    mark = "~" if marks.ascii_only else "…"
    end = min(3, width - 2)
    return f"{text[: width - end - 1]}{mark}{text[-end:]}"
