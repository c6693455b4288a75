"""What changes of light cost in the last training steps of a job, by what its ranks report."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from lumctl.printable import counted, is_or_are
from lumctl.quantity_text import seconds_text
from lumctl.training.phase_model import ChangeMode
from lumctl.training.protocol import printable_line

MOST_STEPS = 512
"""The number of steps that are kept."""
MOST_ROWS = 32
"""The most boundaries of a rank that are counted, and the most that are shown."""
_CHANGE = 7
"""Where the row of a boundary has the time of the change."""


@dataclass(slots=True)
class StepLight:
    """The changes of light in one training step; times in seconds, each that of the rank with the longest.

    ``wait_s`` is how long a rank waited for light in all, ``hidden_s`` how much of the changes asking ahead hid,
    ``worst_s`` the longest single wait, ``change_s`` how long the changes took in all, and ``step_s`` the step.
    ``modes`` counts changes of all ranks.
    """

    step: int
    changes: int = 0
    wait_s: float = 0.0
    hidden_s: float = 0.0
    worst_s: float = 0.0
    change_s: float = 0.0
    step_s: float = 0.0
    modes: Counter[str] = field(default_factory=Counter)

    def note(self, said: Mapping[str, Any]) -> None:
        """Add what a rank reports."""
        self.changes = max(self.changes, int(said["changes"]))
        self.wait_s = max(self.wait_s, float(said["wait_s"]))
        self.hidden_s = max(self.hidden_s, float(said["hidden_s"]))
        self.worst_s = max(self.worst_s, float(said["worst_s"]))
        rows = said["boundaries"][:MOST_ROWS]
        self.change_s = max(self.change_s, sum(float(row[_CHANGE]) for row in rows if len(row) > _CHANGE))
        self.step_s = max(self.step_s, float(said.get("step_s", 0.0)))
        self.modes.update(str(ChangeMode(row[2])) for row in rows)

    @property
    def mode(self) -> str | None:
        """The mode of all its changes; ``None`` if it had both, or none."""
        return next(iter(self.modes)) if len(self.modes) == 1 else None

    def document(self) -> dict[str, Any]:
        """The step as data."""
        times = {name: getattr(self, name) for name in ("wait_s", "hidden_s", "worst_s", "change_s", "step_s")}
        return {"step": self.step, "changes": self.changes, **times, "modes": dict(self.modes)}


class PhaseRecord:
    """The last training steps of a job with phases. Bounded in steps and in what a rank may say of one."""

    def __init__(self) -> None:
        self._steps: deque[StepLight] = deque(maxlen=MOST_STEPS)
        self._boundaries: dict[tuple[str, str], tuple[str, bool | None]] = {}
        self._waited_s = self._hidden_s = 0.0

    def note(self, step: int, said: Mapping[str, Any]) -> None:
        """Take the report of a rank on a step.

        Raises:
            KeyError, TypeError, ValueError: it is malformed.
        """
        if not self._steps or self._steps[-1].step < step:
            self._steps.append(StepLight(step))
        found = next((each for each in reversed(self._steps) if each.step == step), None)
        if found is None:
            return  # forgotten, or repeated after a recovery
        before = found.wait_s, found.hidden_s
        found.note(said)
        self._waited_s += found.wait_s - before[0]
        self._hidden_s += found.hidden_s - before[1]
        for left, entered, mode, pays, *_ in said["boundaries"][:MOST_ROWS]:
            boundary = printable_line(str(left)), printable_line(str(entered))
            if len(self._boundaries) < MOST_ROWS or boundary in self._boundaries:
                self._boundaries[boundary] = str(ChangeMode(mode)), None if pays is None else bool(pays)

    def totals(self) -> dict[str, float]:
        """The seconds that all steps have waited and hidden, and the longest wait in those that are kept."""
        worst_s = max((each.worst_s for each in self._steps), default=0.0)
        return {"wait_s": self._waited_s, "hidden_s": self._hidden_s, "worst_s": worst_s}

    def document(self, shown: int = 64) -> dict[str, Any]:
        """The last steps, the steps of each mode beside each other, and what was decided for each boundary.

        The last step is left out: not all ranks may have reported it.
        """
        complete = list(self._steps)[:-1]
        return {
            "steps": [each.document() for each in complete[-shown:]],
            "by_mode": {mode: _in_mode(complete, mode) for mode in ChangeMode},
            "boundaries": [
                {"left": left, "entered": entered, "mode": mode, "pays": pays}
                for (left, entered), (mode, pays) in self._boundaries.items()
            ],
        }


def _in_mode(steps: list[StepLight], mode: ChangeMode) -> dict[str, Any]:
    own = [each for each in steps if each.mode == mode]
    if not own:
        return {"steps": 0}
    times = {name: round(median(getattr(each, name) for each in own), 6) for name in ("wait_s", "hidden_s", "worst_s")}
    return {"steps": len(own), "changes": median(each.changes for each in own), **times}


def order_faults(order: Sequence[str], observed: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """What differs between the order of phases in the inventory and the changes that ranks made, in words.

    ``observed`` are the phases left and entered. The last phase of the order leads to the first of the next step.
    """
    meant = {pair for pair in zip(order, (*order[1:], *order[:1]), strict=True) if pair[0] != pair[1]}
    made = set(observed)
    unmeant = [f"ranks change from {left} to {entered}, which the order does not" for left, entered in made - meant]
    missing = [f"no rank changes from {left} to {entered}, as the order does" for left, entered in meant - made]
    return (*sorted(unmeant), *sorted(missing))


def light_words(light: Mapping[str, Any]) -> tuple[str, ...]:
    """The light of a job, from its status document, in a few lines: what has light, what it costs, what was chosen."""
    lit = ", ".join(f"{device} {phase or 'changes'}" for device, phase in light["lit"].items())
    changes = counted(light["changes"], "changes of light")
    if light.get("plan") is not None:
        changes += f" under {light['plan']}"
    failed = f", {light['failed_changes']} failed" if light["failed_changes"] else ""
    refused = sum(light["refused"].values())
    lines = [
        f"{lit or 'at rest'}; {changes}{failed}" + (f", {counted(refused, 'refused requests')}" if refused else "")
    ]
    if (proofs := light.get("proofs")) is not None:
        lines.append(_proof_words(proofs))
    if steps := light["steps"]:
        wait_s, hidden_s = (median(step[name] for step in steps) for name in ("wait_s", "hidden_s"))
        per_step = median(step["changes"] for step in steps)
        lines.append(
            f"{per_step:g} changes a step: {seconds_text(wait_s)} waiting for light and for other ranks, "
            f"{seconds_text(hidden_s)} hidden{_hidden_share(steps)} (medians of {counted(len(steps), 'steps')}), "
            f"worst wait {seconds_text(max(step['worst_s'] for step in steps))}"
        )
    chosen = [f"{each['left']} to {each['entered']} {_chosen(each)}" for each in light["boundaries"]]
    return (*lines, *(["; ".join(chosen)] if chosen else []))


def _proof_words(proofs: Mapping[str, Any]) -> str:
    """How much of the training rests on light that was shown to be right."""
    proven, provisional, failed = proofs["proven_steps"], proofs["provisional_steps"], proofs["failed"]
    shown = f"{counted(proven, 'steps')} {is_or_are(proven)} proven" + (
        f", {provisional} not yet" if provisional else ""
    )
    how = f"shown {proofs['by_traffic']} times by traffic, {proofs['by_proof']} times by a proof of light"
    return f"{shown}; {how}" + (f"; {counted(failed, 'proofs')} found wrong light" if failed else "")


def _hidden_share(steps: Sequence[Mapping[str, Any]]) -> str:
    """How much of the time of the changes asking ahead hid, in words; nothing if no change took any."""
    change_s = sum(step.get("change_s", 0.0) for step in steps)
    hidden_s = min(sum(step["hidden_s"] for step in steps), change_s)
    return f", {hidden_s / change_s:.0%} of the changes" if change_s else ""


def _chosen(boundary: Mapping[str, Any]) -> str:
    mode = "ahead" if boundary["mode"] == ChangeMode.AHEAD else "on demand"
    if boundary["pays"] is None:
        return f"{mode}, being compared"
    return mode if boundary["pays"] else f"{mode}: neither is faster"
