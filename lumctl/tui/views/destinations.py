"""The destination of a name: a pane, a component's row in a pane, or a separate screen; pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from lumctl.inventory.problems import nearest
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes import PANES
from lumctl.tui.panes.rows import Pane, Row
from lumctl.tui.views.records import RecordedLook

PANE_BY_ID = {pane.id: pane for pane in PANES}


@dataclass(frozen=True, slots=True)
class Destination:
    """A pane, and the row to select there; without a pane, the screen of the component."""

    pane: Pane | None = None
    row: Row | None = None


def names_of(seen: RecordedLook | None) -> tuple[str, ...]:
    """All names to go to, each once: panes first, then components and racks."""
    if seen is None:
        return tuple(PANE_BY_ID)
    inventory = seen.observation.inventory
    components = (inventory.accelerators, seen.observation.report.circuits, inventory.hosts, inventory.devices)
    names = [name for group in components for name in group]
    return tuple(dict.fromkeys([*PANE_BY_ID, *names, *inventory.transponders, *inventory.racks]))


def destination_of(name: str, seen: RecordedLook | None, marks: Marks) -> Destination:
    """The destination of a name from ``names_of``: the screen of a rack, mesh or switch; another component's row."""
    if name in PANE_BY_ID:
        return Destination(PANE_BY_ID[name])
    if seen is None:
        return Destination()
    inventory = seen.observation.inventory
    if name not in {*inventory.racks, *(each.id for each in inventory.light_devices)}:
        for pane in PANES:
            rows = pane.rows(seen, marks) if pane.lists_components else ()
            if (found := next((row for row in rows if row.component == name), None)) is not None:
                return Destination(pane, found)
    return Destination()


def name_meant(typed: str, names: Iterable[str]) -> tuple[str | None, str]:
    """The name that was typed, ignoring case; else ``None`` and a message that suggests the nearest name."""
    by_name = {name.lower(): name for name in names}
    if (name := by_name.get(typed.lower())) is not None:
        return name, ""
    near = nearest(typed.lower(), by_name)
    return None, f"no pane or component {typed!r}" + (f"; did you mean {by_name[near]!r}?" if near else "")
