"""The screen of an autopilot, one of its policies or one of its decisions, with a key to stop or start it."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from lumctl.tui.actions import ApplyView
from lumctl.tui.panes.policies import DECISION, find
from lumctl.tui.screens.confirmation import AskingScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.views.policy_text import autopilot_text, decision_text, policy_text
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar
from lumctl.tui.widgets.prompt import Question


@dataclass
class Explained(Message):
    """The decisions that would be made now; if they are unknown, ``trouble`` is the reason."""

    decisions: Sequence[Mapping[str, Any]] | None
    trouble: str = ""


class PolicyScreen(AskingScreen, keys="policy"):
    """Redrawn each second, because limits and breakers change with time alone."""

    def __init__(self, key: str, context: ScreenContext) -> None:
        super().__init__(context)
        self._rack, _, self._rest = key.partition("/")
        self._decision: Mapping[str, Any] | None = None
        self._again: Sequence[Mapping[str, Any]] | None = None
        self._trouble = ""
        self._wanted = ""

    def compose(self) -> ComposeResult:
        """A scrolling text between the bars, and the question below it."""
        yield TopBar(self._heading(), self.context.target)
        with VerticalScroll():
            yield Static(id="policy")
        yield AnswerLine()
        yield Question()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Draw now and each second; for a decision, also find out what would be decided now."""
        self.query_one(VerticalScroll).focus()
        self._show()
        self.set_interval(1.0, self._show)
        # ``_show`` has looked it up.
        if self._decision is not None:
            threading.Thread(target=self._explain, name="lumctl-explain", daemon=True).start()

    def action_switch(self) -> None:
        """Ask whether to stop the autopilot, or to start it again."""
        autopilot = self._autopilot()
        if reason := self.context.acts.forbidden:
            self.say(reason)
        elif autopilot is None:
            self.say("the state of the autopilot has not been read yet")
        elif autopilot["state"] == "off":
            self.say(f"{self._rack} has no policies: nothing is ever done automatically, and there is nothing to stop")
        else:
            self._wanted = "start" if autopilot["state"] in {"stopped", "halted"} else "stop"
            self.ask()

    def question(self) -> str:
        """The question with the consequences of stopping or starting the autopilot."""
        autopilot = self._autopilot()
        return consequences(self._wanted, autopilot, self.context.target) if autopilot is not None else ""

    def order(self) -> tuple[str, Callable[[str], ApplyView]]:
        """Stop or start the autopilot."""
        acts = self.context.acts
        switch = acts.stop_autopilot if self._wanted == "stop" else acts.start_autopilot
        return f"{_DOING[self._wanted]} the autopilot of {self._rack}", partial(switch, self._rack)

    def on_explained(self, event: Explained) -> None:
        """Show what would be decided now."""
        event.stop()
        self._again, self._trouble = event.decisions, event.trouble
        self._show()

    def _heading(self) -> str:
        kind, _, name = self._rest.partition("/")
        return f"{kind} {name}" if kind == "policy" else f"{kind or 'autopilot'} in {self._rack}"

    def _autopilot(self) -> Mapping[str, Any] | None:
        seen = self.context.seen()
        autopilots = seen.records.autopilots if seen is not None else ()
        return next((each for each in autopilots if each["rack"] == self._rack), None)

    def _show(self) -> None:
        self.query_one("#policy", Static).update(self._text())

    def _text(self) -> Text:
        seen, autopilot = self.context.seen(), self._autopilot()
        if seen is None or autopilot is None:
            return Text(f"nothing has been read of {self._rack} yet")
        marks, now = self.context.marks, self.context.now()
        policies, (kind, _, name) = seen.observation.inventory.policies, self._rest.partition("/")
        if kind == DECISION:
            # Keep the decision while the screen is open: newer decisions push it out of the list.
            self._decision = self._decision or find(autopilot, self._rest)
            if self._decision is None:
                return Text("this decision is no longer among the newest: lumctl autopilot status")
            return decision_text(self._decision, self._again, self._trouble, marks, now)
        policy = next((policy for policy in policies if kind == "policy" and policy.name == name), None)
        if policy is not None:
            return policy_text(autopilot, policy, marks, now)
        return autopilot_text(autopilot, marks, now)

    def _explain(self) -> None:
        seen = self.context.seen()
        try:
            if seen is not None:
                self.post_message(Explained(self.context.sources.explain(seen.observation, self._rack)))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(Explained(None, self.context.sources.aimed(one_line(error))))


_DOING = {"stop": "stopping", "start": "starting"}


def consequences(wanted: str, autopilot: Mapping[str, Any], target: str) -> str:
    """The question that asks to confirm stopping or starting an autopilot, with the consequences."""
    rack, how = autopilot["rack"], "Type yes (and a reason, if you like) and press enter; esc cancels."
    if wanted == "stop":
        return (
            f"Stop the autopilot of {rack} on TARGET {target}? Then it does nothing automatically and applies no "
            "approved plan. A swap in progress is finished or rolled back, not interrupted. Swaps by hand continue. "
            f"{how}"
        )
    halted = (
        f"It stopped itself: {autopilot['why']}; look at that run first. " if autopilot["state"] == "halted" else ""
    )
    return (
        f"{halted}Let the autopilot of {rack} act again on TARGET {target}? It does what its policies allow, at once "
        f"if a fault persists; faults older than a policy's oldest_s are left to operators. {how}"
    )
