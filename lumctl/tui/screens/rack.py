"""The screen of a rack: its accelerators by host, and the links between them."""

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from lumctl.health.observation import Observation
from lumctl.health.states import State
from lumctl.printable import counted
from lumctl.tui.look.marks import QUIET_STYLE, STATE_STYLES
from lumctl.tui.panes.rows import COMPONENT, counts_cell
from lumctl.tui.screens.requests import PlanWanted, Wanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.views.detail_text import LINE_S
from lumctl.tui.views.history import joined, nothing_kept
from lumctl.tui.views.subject import WorkSubject
from lumctl.tui.views.swap_choice import offers_swap, swaps_of_component
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar
from lumctl.tui.widgets.heat import HeatPicture
from lumctl.tui.widgets.rack_view import RackView

RACK_FACTS = "rack"
"""The kind of the screen with the details of a rack."""


class RackScreen(KeyedScreen[None], keys="rack"):
    """Shows a rack with one chosen accelerator (at first the worst), whose links are listed first."""

    def __init__(self, rack: str, context: ScreenContext) -> None:
        super().__init__()
        self._rack = rack
        self._shared = context
        self._view = RackView(
            context.marks,
            context.now,
            rack,
            # From memory alone: this runs in the thread of the widgets, which must not wait for a store.
            lambda component: joined(nothing_kept, context.sources.ring, component, LINE_S),
        )

    def compose(self) -> ComposeResult:
        """The rack between the bars."""
        yield TopBar(self._rack, self._shared.target)
        yield Static(id="shown", markup=False)
        yield self._view
        yield AnswerLine()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Draw now and each second."""
        self._view.picture.focus()
        self.call_after_refresh(self._show)
        self.set_interval(1.0, self._show)

    def action_choose(self, across: int, down: int) -> None:
        """Choose the accelerator next to this one, above or below; on a host with fewer accelerators, the last one."""
        self._view.picture.action_choose(across, down)

    def action_turn_quantity(self) -> None:
        """Show another quantity."""
        self._view.turn_quantity()

    def action_details(self) -> None:
        """Open the chosen accelerator."""
        if self._view.chosen is not None:
            self.post_message(Wanted(COMPONENT, self._view.chosen))

    def action_rack_details(self) -> None:
        """Open the details of the rack."""
        self.post_message(Wanted(RACK_FACTS, self._rack))

    def subject(self) -> WorkSubject:
        """The chosen accelerator."""
        return WorkSubject(self._view.chosen or "")

    def action_plan_swap(self) -> None:
        """Request a plan for the chosen accelerator and those that fail with the same cause."""
        seen, chosen = self._shared.seen(), self._view.chosen
        if seen is not None and chosen is not None:
            first, *others = swaps_of_component(seen.observation, chosen) or (chosen,)
            self.post_message(PlanWanted(first, tuple(others)))

    def action_scroll_links(self, lines: int) -> None:
        """Scroll the links."""
        self._view.scroll_links(lines)

    def on_rack_view_redrawn(self) -> None:
        """Remove the message about the earlier choice, and draw again."""
        self.query_one(AnswerLine).say("")
        self._show()

    def on_heat_picture_opened(self, event: HeatPicture.Opened) -> None:
        """Open the chosen accelerator after enter or a click."""
        event.stop()
        self.action_details()

    def _show(self) -> None:
        seen = self._shared.seen()
        if seen is None or not self.is_attached:  # is_mounted is still false at the first call
            return
        self._view.show(seen)
        is_offered = offers_swap(seen, swaps_of_component(seen.observation, self._view.chosen))
        self.query_one(KeyBar).rename({} if is_offered else {"plan_swap": ""})
        self._say(seen.observation)

    def _say(self, observation: Observation) -> None:
        """Show counts of accelerators by state, devices that are not ok, the legend, and the age of the observation."""
        report, inventory = observation.report, observation.inventory
        hosts = sum(host.rack == self._rack for host in inventory.hosts.values())
        about = Text(f"{counted(hosts, 'hosts')}")
        if len(inventory.racks) > 1:  # with one rack, the strip has the same numbers
            here = [name for name, each in inventory.accelerators.items() if each.rack == self._rack]
            counts = counts_cell(report.accelerators[name].state for name in here if name in report.accelerators)
            about.append(f", {counted(len(here), 'accelerators')}: ").append(counts.text, counts.style)
        for device in inventory.light_devices:
            health = report.devices.get(device.id)
            if device.rack == self._rack and health is not None and health.state is not State.OK:
                about.append(f"; {device.id} ").append(
                    self._shared.marks.state(health.state), STATE_STYLES[health.state]
                )
        about.append(f"; {self._view.legend}", style=QUIET_STYLE)
        self.query_one("#shown", Static).update(about)
        self.query_one(TopBar).say_age(observation.at, self._shared.now(), inventory.thresholds.stale_after_s)
