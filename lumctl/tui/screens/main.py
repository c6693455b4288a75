"""The main screen: the panes, the line for a filter or a name, and messages about the data.

The screen posts messages to the application (the operator's requests); the application calls the screen to show data.
Nothing here blocks.
"""

from collections.abc import Callable, Collection

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from lumctl.tui.look.marks import Marks
from lumctl.tui.panes import PANES
from lumctl.tui.panes.incidents import INCIDENTS, LOG
from lumctl.tui.panes.rows import COMPONENT, trouble_cell
from lumctl.tui.panes.swaps import RUNBOOKS, SWAPS
from lumctl.tui.preferences import Preferences
from lumctl.tui.screens.columns import ColumnsScreen
from lumctl.tui.screens.plot import PLOT_KIND
from lumctl.tui.screens.requests import (
    LOSSES_KIND,
    MATRIX_KIND,
    TORUS_KIND,
    PlanWanted,
    RefreshWanted,
    Wanted,
)
from lumctl.tui.screens.row_actions import RowAct, RowActions
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.views.destinations import PANE_BY_ID, destination_of, name_meant, names_of
from lumctl.tui.views.headline import headline, news_of
from lumctl.tui.views.history import History
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.subject import WorkSubject
from lumctl.tui.views.swap_choice import others_than_headline
from lumctl.tui.widgets.bars import AnswerLine, Headline, KeyBar, Tab, Tabs, TopBar
from lumctl.tui.widgets.heat import HeatPicture
from lumctl.tui.widgets.pane_area import PaneArea
from lumctl.tui.widgets.prompt import Prompt, Question
from lumctl.tui.widgets.table import PaneTable


class MainScreen(KeyedScreen[None], keys="main"):
    """Shows the headline and one pane; the first pane has the racks, drawn or as a table."""

    def __init__(
        self,
        title: str,
        target: str,
        marks: Marks,
        now: Callable[[], float],
        preferences: Preferences,
        remembered: Callable[[str], History] = lambda _: History(),
    ) -> None:
        super().__init__()
        self._title = title
        self._target = target
        self._marks = marks
        self._seen: RecordedLook | None = None
        self._others = False
        """Whether other faults than the headline's can be repaired by a swap."""
        self._named_pane = ""
        """The pane whose key the headline names; empty if it names none."""
        self._preferences = preferences
        self.area = PaneArea(marks, now, preferences, remembered)
        self._actions = RowActions(lambda: self.query_one(Question), self.say, self.post_message)

    def compose(self) -> ComposeResult:
        """Create the widgets from top to bottom."""
        yield TopBar(self._title, self._target)
        yield Tabs()
        yield Headline(self._marks)
        yield Static(id="banner", markup=False)
        yield Static(self.area.line, id="shown", markup=False)
        yield self.area
        yield AnswerLine()
        yield Prompt()
        yield Question()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Show the first pane, which is empty before the first reading."""
        self._show_tabs()
        self.area.take_focus()

    def show(self, seen: RecordedLook) -> None:
        """Show a new observation. If ranks have moved, a message about the earlier placement is removed."""
        if self._seen is not None and self._seen.observation.assignment != seen.observation.assignment:
            self.say("")
        self._seen = seen
        news = news_of(seen)
        line = self.query_one(Headline)
        line.say(headline(seen, news, self._marks, line.size.width))
        self._others = others_than_headline(seen, news)
        self._named_pane = news[0].pane if news else ""
        self._show_tabs()
        self.area.show(seen)

    def tick(self, freshness: Text, trouble: str | None) -> None:
        """Update the ages each second, the freshness of the data, and the error (``trouble``) of the last reading."""
        # The screen is being removed: its widgets go one after the other, the inner ones first.
        if not (self.query("#freshness") and self.query("#banner")):
            return
        self.query_one(TopBar).say(freshness)
        banner = self.query_one("#banner", Static)
        if banner.content != (trouble or ""):
            banner.set_class(trouble is not None, "-open")
            banner.update(trouble or "")
        self.area.tick()

    def say(self, text: str) -> None:
        """Show a message to the operator in one line; an empty text removes the line."""
        self.query_one(AnswerLine).say(text)

    def on_pane_area_turned(self) -> None:
        """Mark the tab of the new pane, and remove messages about the earlier one."""
        self.say("")
        self._show_tabs()

    def on_pane_area_changed(self) -> None:
        """Update the line that states which rows are shown, and the keys that are offered for the selected one."""
        shown = self.query_one("#shown", Static)
        if shown.content != self.area.line:
            shown.update(self.area.line, layout=False)
        self._show_keys()

    def on_rack_view_redrawn(self) -> None:
        """Remove the message: it was about the accelerator that was chosen before."""
        self.say("")

    def subject(self) -> WorkSubject:
        """The selected component, incident or run."""
        selection = self.area.selection
        row, pane = selection.row, selection.pane
        run = row.key if row is not None and pane in {SWAPS, RUNBOOKS} else ""
        if row is not None and pane is LOG and row.opens is not None and row.opens[0] == "run":
            run = row.opens[1]
        return WorkSubject(selection.component or "", selection.incident, run)

    def action_show_pane(self, pane: str) -> None:
        """Switch to a pane."""
        self.area.turn_to(PANE_BY_ID[pane])

    def action_list_racks(self) -> None:
        """Switch between the racks as a table and the racks drawn."""
        self.area.list_racks()

    def action_torus(self) -> None:
        """Open the screen of the torus."""
        self.post_message(Wanted(TORUS_KIND, ""))

    def action_matrix(self) -> None:
        """Open the link matrix of the rail of the selected component."""
        if self._seen is None:
            return
        selection = self.area.selection
        accelerator = selection.accelerator(self._seen) or self.area.view.chosen
        rails = selection.rails(self._seen.observation, accelerator)
        if rails:
            self.post_message(Wanted(MATRIX_KIND, rails[0]))
        else:
            self.say("no accelerator has a lane: there are no links to show")

    def action_losses(self) -> None:
        """Open the screen of the loss budgets of all circuits."""
        self.post_message(Wanted(LOSSES_KIND, ""))

    def on_heat_picture_opened(self, event: HeatPicture.Opened) -> None:
        """Open the accelerator after enter or a click."""
        event.stop()
        self.action_details()

    def on_pane_table_row_selected(self, event: PaneTable.RowSelected) -> None:
        """Open the selected line after enter or a click."""
        event.stop()
        self.action_details()

    def action_turn(self, by: int) -> None:
        """Switch to the next or the previous pane; while a name is typed, complete it."""
        prompt = self.query_one(Prompt)
        if prompt.opened:
            prompt.complete()
        else:
            self.area.turn_to(PANES[(PANES.index(self.area.pane) + by) % len(PANES)])

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self.area.move(by)

    def action_details(self) -> None:
        """Ask for the details of the selected component."""
        selection = self.area.selection
        if selection.row is not None:
            pane, row = selection.pane, selection.row
            kind, key = row.opens or (pane.opens, row.component if pane.opens == COMPONENT else row.key)
            self.post_message(Wanted(kind, key))
        elif selection.chosen is not None:
            self.post_message(Wanted(COMPONENT, selection.chosen))

    def action_sort(self, by: int) -> None:
        """Sort by the next or the previous column."""
        self.area.table.action_sort(by)

    def action_reverse(self) -> None:
        """Reverse the order."""
        self.area.table.action_reverse()

    def action_columns(self) -> None:
        """Choose the columns of the table."""
        table, pane = self.area.table, self.area.pane

        def hide(columns: Collection[str]) -> None:
            table.hide(columns)
            self.say(self._preferences.hide(pane.id, columns))

        self.app.push_screen(ColumnsScreen(pane, table.cells.hidden, self._target, hide))

    def action_mark_or_measure(self) -> None:
        """Mark or unmark the line; in the picture of the racks, show the next quantity."""
        if self.area.is_drawn:
            self.area.turn_quantity()
        else:
            self.area.mark()

    def action_acknowledge(self) -> None:
        """Ask for the reason to acknowledge the findings of the marked lines, or of the selected one."""
        self._act(RowAct.ACKNOWLEDGE)

    def action_maintain(self) -> None:
        """Ask for the duration and the reason of maintenance of the marked components, or of the selected one."""
        self._act(RowAct.MAINTAIN)

    def action_drain(self) -> None:
        """Plan to move the ranks of the marked components, or of the selected one, to spares."""
        self._act(RowAct.DRAIN)

    def _act(self, act: RowAct) -> None:
        pane, rows = self.area.selection.rows
        self._actions.begin(act, self._seen, pane, rows)

    def show_result(self, line: str, *, done: bool) -> None:
        """Show the result of an action on rows; remove the marks if it was done."""
        if done:
            self.area.unmark()
        self.say(line)

    def on_question_answered(self, event: Question.Answered) -> None:
        """Carry out the action on rows if the answer is complete."""
        event.stop()
        if self._actions.answered(event.text):
            self.area.take_focus()

    def action_plot(self) -> None:
        """Show the readings over time of the marked components, or of the selected one."""
        _, rows = self.area.selection.rows
        if names := dict.fromkeys(row.component for row in rows if row.component):
            self.post_message(Wanted(PLOT_KIND, " ".join(names)))

    def action_problem(self, by: int) -> None:
        """Select the next or the previous row with a fault."""
        self.say("" if self.area.table.to_problem(by) else f"none of these {self.area.pane.noun} has a fault")

    def action_plan_swap(self) -> None:
        """Request a plan for the selection if it has a fault, else for the component in the headline."""
        if self._seen is None:
            self.say("nothing has been read yet: wait for the first observation")
            return
        if self._seen.forbidden:
            self.say(self._seen.forbidden)
            return
        selection = self.area.selection
        choice = selection.swap(self._seen)
        if choice.accelerators:
            first, *others = choice.accelerators
            self.post_message(PlanWanted(first, tuple(others), choice.left_out))
        elif selection.component is None and self.area.filter_words:
            self.say("the filter leaves no line to choose (esc: all)")
        else:
            self.say(choice.why_none)

    def action_fold(self) -> None:
        """Fold or unfold the rows of the selected line's group; in the picture, open the rack."""
        if self._seen is not None and (chosen := self.area.selection.chosen) is not None:
            self.post_message(Wanted(COMPONENT, self._seen.observation.inventory.accelerators[chosen].rack))
        else:
            self.area.fold()

    def action_refresh_now(self) -> None:
        """Ask for a new reading."""
        self.say("")
        self.post_message(RefreshWanted())

    def action_filter(self) -> None:
        """Open the line for a filter; if the racks are drawn, switch to their table."""
        if self.area.is_drawn:
            self.area.list_racks(listed=True)
        self.say("")
        self.query_one(Prompt).open("/", self.area.filter_words)

    def action_go_to(self) -> None:
        """Open the line for a name."""
        self.say("")
        self.query_one(Prompt).open(":", names=self.names())

    def action_back(self) -> None:
        """Close an open question; else close the line for a name or filter, and remove the marks, else the filter."""
        prompt = self.query_one(Prompt)
        if self._actions.asks:
            self._actions.leave()
            self.area.take_focus()
            return
        if prompt.opened:
            prompt.close()
        self.say("")
        if not self.area.unmark():
            self.area.show_all()

    def on_prompt_filtered(self, event: Prompt.Filtered) -> None:
        """Apply the filter as it is typed."""
        self.area.filter(event.words)

    def on_prompt_closed(self) -> None:
        """Return the focus to the table or the picture."""
        self.area.take_focus()

    def on_prompt_gone_to(self, event: Prompt.GoneTo) -> None:
        """Go to the named pane or component; if there is none, suggest the nearest name."""
        name, complaint = name_meant(event.name, self.names())
        if name is None:
            self.say(complaint)
        else:
            self.go_to(name)

    def go_to(self, name: str) -> None:
        """Go to a pane, to a component's line or drawing, else to its details."""
        to = destination_of(name, self._seen, self._marks)
        if to.pane is None:
            self.post_message(Wanted(COMPONENT, name))
        else:
            self.area.go_to(to)

    def names(self) -> tuple[str, ...]:
        """The names of panes and components to go to."""
        return names_of(self._seen)

    def _show_keys(self) -> None:
        if self._seen is None:
            return
        leads_on = self._named_pane and self._named_pane != self.area.pane.id
        first = f"show_pane('{self._named_pane}')" if leads_on else ""
        labels = {first: PANE_BY_ID[self._named_pane].title.lower()} if first else {}
        if self._others:
            labels[f"show_pane('{INCIDENTS.id}')"] = _OTHERS
        if not self.area.selection.offers_swap(self._seen):
            labels["plan_swap"] = ""  # pressed all the same, it shows why there is nothing to plan
        if not self.area.is_drawn:
            labels["mark_or_measure"] = "mark"
        self.query_one(KeyBar).rename(labels, first)

    def _show_tabs(self) -> None:
        seen = self._seen
        tabs = [
            Tab(
                pane.id,
                pane.title,
                pane.short or pane.title,
                trouble_cell(pane.trouble(seen) if seen else (), self._marks),
            )
            for pane in PANES
        ]
        self.query_one(Tabs).show(tabs, self.area.pane.id)


_OTHERS = "others"
"""The label of the incidents' key while other faults than the headline's can be repaired by a swap."""
