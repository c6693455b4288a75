"""A run as its screen shows it: who did what when, how each step went, and what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.text import Text

from lumctl.health.states import State
from lumctl.printable import counted
from lumctl.store import ACTION_KINDS, JournalEntry, StoredRun
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks, clock
from lumctl.tui.panes.swaps import STATES
from lumctl.tui.views.light import Receiver, planned_receivers
from lumctl.tui.views.steps import StepView, journalled, planned_steps, steps_text


@dataclass(frozen=True, slots=True)
class RunView:
    """A run and its journal. ``cut``: it did not finish and no engine works on it any more.

    ``before`` is the power (dBm) at receivers before anything moved, as far as the run recorded it.
    """

    run: StoredRun
    steps: tuple[StepView, ...]
    cut: bool = False
    receivers: tuple[Receiver, ...] = ()
    before: Mapping[str, float] = field(default_factory=dict)
    proved: int = 0
    said: tuple[str, ...] = ()

    @property
    def live(self) -> bool:
        """Whether an engine works on it."""
        return self.run.state == "running" and not self.cut


def run_view(run: StoredRun, entries: tuple[JournalEntry, ...], *, cut: bool) -> RunView:
    """A run from its store's data; ``cut`` as in :meth:`lumctl.store.runs.Runs.unfinished`."""
    cut = cut and run.state == "running"
    done = [entry.data for entry in entries if entry.kind == "outcome"]
    steps = journalled(planned_steps(run.plan), entries, over=cut or run.state != "running")
    powers = {name: dbm for data in done for name, dbm in data.get("powers", {}).items()}
    failed = (str(entry.data["failed"]) for entry in entries if entry.kind == "end" and "failed" in entry.data)
    return RunView(
        run,
        steps,
        cut,
        planned_receivers(run.plan),
        powers,
        sum(len(data.get("proofs", ())) for data in done),
        tuple(failed),
    )


def what_to_do(view: RunView) -> str | None:
    """The command that finishes an unfinished run; ``None`` if nothing is to be done."""
    run = view.run
    if not view.cut and run.state != "half-done":
        return None
    aimed = f"{run.id} --target {run.target}"
    return f"continue with it: lumctl swap resume {aimed}; or undo it: lumctl swap abort {aimed}"


def head_text(view: RunView, marks: Marks, now: float) -> Text:
    """Title, outcome, who and when."""
    run = view.run
    state = State.FAILED if view.cut else STATES.get(run.state, State.UNKNOWN)
    outcome = "cut" if view.cut else run.state
    text = Text()
    text.append(f"{run.title}\n", style=HEADING_STYLE)
    text.append(f"{marks.glyphs.get(state, ' ')} {outcome}", style=STATE_STYLES[state])
    text.append(f" by {run.undone_by}" if run.undone_by else "")
    took = "" if run.ended_at is None else f", took {run.ended_at - run.started_at:.1f} s"
    proved = f", {counted(view.proved, 'receivers')} proved" if view.proved else ""
    text.append(f"  by {run.who} at {clock(run.started_at, now)}{took}{proved}\n", style=QUIET_STYLE)
    for line in view.said:
        text.append(f"it failed: {line}\n")
    if todo := what_to_do(view):
        text.append(f"what to do: {todo}\n", style=STATE_STYLES[State.FAILED])
    return text


def run_text(view: RunView, marks: Marks, now: float) -> Text:
    """All of a run but its light."""
    text = head_text(view, marks, now)
    if view.steps:
        text.append("\nsteps\n", style=HEADING_STYLE)
        text.append_text(steps_text(view.steps, marks, now))
    return text


def no_way_back(view: RunView) -> str | None:
    """Why a run is not undone from its screen; ``None`` where that can be planned."""
    run = view.run
    if view.live:
        return f"{run.id} is under way: it is undone once it has ended"
    if (todo := what_to_do(view)) is not None:
        return todo
    if run.state != "done":
        return f"{run.id} is {run.state}: nothing of it stands"
    if run.kind in ACTION_KINDS:
        return f"{run.id} touched no device: what it said is undone by saying the opposite"
    return None
