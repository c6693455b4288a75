"""A run as text: who did what and when, the result of each step, and what to do about it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rich.text import Text

from lumctl.health.states import State
from lumctl.jobs.stopped_jobs import StoppedJob
from lumctl.printable import counted
from lumctl.store import ACTION_KINDS, JournalEntry, StoredRun
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks, clock
from lumctl.tui.panes.swaps import STATES
from lumctl.tui.views.light import Receiver, planned_receivers, proof_words
from lumctl.tui.views.steps import StepView, journalled, planned_steps, steps_text


@dataclass(frozen=True, slots=True)
class RunView:
    """A run and its journal. ``cut``: it did not finish, and no engine works on it any longer.

    ``before`` is the power (dBm) at receivers before the change, if the run recorded it.
    """

    run: StoredRun
    steps: tuple[StepView, ...]
    cut: bool = False
    receivers: tuple[Receiver, ...] = ()
    before: Mapping[str, float] = field(default_factory=dict)
    proved: Mapping[str, str] = field(default_factory=dict)
    """The evidence that a receiver hears its transmitter, by receiver."""
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
        {
            str(proof["receiver"]): proof_words(proof["evidence"], proof["seconds"])
            for data in done
            for proof in data.get("proofs", ())
        },
        tuple(failed),
    )


def what_to_do(view: RunView) -> str | None:
    """The command that finishes an unfinished run; ``None`` if there is nothing to do."""
    run = view.run
    if not view.cut and run.state != "half-done":
        return None
    aimed = f"{run.id} --target {run.target}"
    return f"continue with it: lumctl swap resume {aimed}; or undo it: lumctl swap abort {aimed}"


def head_text(
    view: RunView,
    marks: Marks,
    now: float,
    aimed: Callable[[str], str] = str,
    stopped_jobs: Iterable[StoppedJob] = (),
) -> Text:
    """Title, outcome, who and when; ``aimed`` completes commands. ``stopped_jobs`` may be those of other runs too."""
    run = view.run
    state = State.FAILED if view.cut else STATES.get(run.state, State.UNKNOWN)
    outcome = "cut" if view.cut else run.state
    text = Text()
    text.append(f"{run.title}\n", style=HEADING_STYLE)
    text.append(f"{marks.glyphs.get(state, ' ')} {outcome}", style=STATE_STYLES[state])
    text.append(f" by {run.undone_by}" if run.undone_by else "")
    took = "" if run.seconds is None else f", took {run.seconds:.2f} s"
    proved = f", {counted(len(view.proved), 'receivers')} proved" if view.proved else ""
    text.append(f"  by {run.who} at {clock(run.started_at, now)}{took}{proved}\n", style=QUIET_STYLE)
    for line in view.said:
        text.append(f"it failed: {line}\n")
    if todo := what_to_do(view):
        text.append(f"what to do: {aimed(todo)}\n", style=STATE_STYLES[State.FAILED])
    for stopped in stopped_jobs:
        if (stopped.run.rack, stopped.run.id) == (run.rack, run.id):
            todo = f"{stopped.job} does not run yet; {stopped.advice}"
            text.append(f"what to do: {aimed(todo)}\n", style=STATE_STYLES[State.DEGRADED])
    return text


def run_text(
    view: RunView,
    marks: Marks,
    now: float,
    aimed: Callable[[str], str] = str,
    stopped_jobs: Iterable[StoppedJob] = (),
) -> Text:
    """The run with its steps, without its light; ``aimed`` and ``stopped_jobs`` as for :func:`head_text`."""
    text = head_text(view, marks, now, aimed, stopped_jobs)
    if view.steps:
        text.append("\nsteps\n", style=HEADING_STYLE)
        text.append_text(steps_text(view.steps, marks, now))
    return text


def no_way_back(view: RunView) -> str | None:
    """Why a run cannot be undone from its screen; ``None`` if undoing it can be planned."""
    run = view.run
    if view.live:
        return f"{run.id} is in progress: it can be undone once it has ended"
    if (todo := what_to_do(view)) is not None:
        return todo
    if run.state != "done":
        return f"{run.id} is {run.state}: there is nothing to undo"
    if run.kind in ACTION_KINDS:
        return f"{run.id} changed no device: to undo it, record the opposite"
    return None
