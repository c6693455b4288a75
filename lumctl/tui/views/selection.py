"""The selection on which the keys of the main screen act; pure."""

from dataclasses import dataclass

from lumctl.health.observation import Observation
from lumctl.health.states import State
from lumctl.tui.panes import PANES
from lumctl.tui.panes.accelerators import ACCELERATORS
from lumctl.tui.panes.incidents import INCIDENTS
from lumctl.tui.panes.rows import Pane, Row
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.spares import rails_of
from lumctl.tui.views.swap_choice import (
    SwapChoice,
    choice_of,
    choice_of_marked,
    offers_swap,
    swaps_of_headline,
    swaps_of_incident,
    swaps_of_selected,
)


@dataclass(frozen=True, slots=True)
class Selection:
    """A pane's row under the cursor and its marked rows; if the racks are drawn, the ``chosen`` accelerator."""

    pane: Pane = PANES[0]
    row: Row | None = None
    marked: tuple[Row, ...] = ()
    chosen: str | None = None

    @property
    def component(self) -> str | None:
        """The selected component."""
        return self.row.component if self.row is not None else self.chosen

    @property
    def incident(self) -> str:
        """The key of the selected incident; empty if no incident is selected."""
        return self.row.key if self.row is not None and self.pane is INCIDENTS else ""

    @property
    def rows(self) -> tuple[Pane, tuple[Row, ...]]:
        """The rows to acknowledge, maintain or drain, and their pane: the marked ones, else the selected one."""
        if self.chosen is not None:
            # The picture has no rows; of this one, only the component is used.
            return ACCELERATORS, (Row(self.chosen, self.chosen, State.UNKNOWN, (), None),)
        return self.pane, self.marked or ((self.row,) if self.row is not None else ())

    def accelerator(self, seen: RecordedLook) -> str | None:
        """The selected accelerator, or the one at fault in the selected incident."""
        if self.incident:
            return next(iter(swaps_of_incident(seen, self.incident)), None)
        return self.component if self.component in seen.observation.inventory.accelerators else None

    def swap(self, seen: RecordedLook) -> SwapChoice:
        """The accelerators that ``p`` plans to replace for the marked rows, else for the selected one."""
        if self.marked:
            return choice_of_marked(seen, (each.component for each in self.marked))
        return choice_of(seen, self.component, self.incident)

    def offers_swap(self, seen: RecordedLook) -> bool:
        """Whether the key ``p`` is offered: a swap can repair what is marked, else selected, else in the headline."""
        return offers_swap(seen, self._failed(seen) or swaps_of_headline(seen))

    def _failed(self, seen: RecordedLook) -> tuple[str, ...]:
        """The accelerators that a spare should replace, of what is marked, else selected."""
        if self.marked:
            return choice_of_marked(seen, (each.component for each in self.marked)).accelerators
        return swaps_of_selected(seen, self.component, self.incident)

    def rails(self, observation: Observation, accelerator: str | None) -> tuple[str, ...]:
        """The selected device, or the devices of the selected circuit, else of ``accelerator``."""
        component = self.component
        if component is not None and component in observation.inventory.devices:
            return (component,)
        circuit = observation.report.circuits.get(component) if component is not None else None
        if circuit is not None:
            return circuit.devices
        return rails_of(observation, accelerator) if accelerator is not None else ()
