"""A runbook as text, with the progress of a replay next to its steps, from the document of ``runbook show``; pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.text import Text

from lumctl.health.states import State
from lumctl.printable import stay
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks
from lumctl.tui.threads.replay import ReplayView
from lumctl.tui.views.sections import Section

REHEARSAL = "A replay runs on a private simulator: no rack is changed, and no run is recorded."
_LABEL = 14
_MARK = 13
_SAID = (("needs", "precondition"), ("proof", "verification"), ("undo", "undo"))
_HEADER = (("outcome", "outcome"), ("kind", "kind"), ("rack", "rack"), ("target", "target"), ("by", "by"),
           ("begun", "at"), ("ended", "ended"), ("undoes", "undoes"), ("undone by", "undone_by"),
           ("program", "lumctl"))  # fmt: skip


@dataclass(slots=True)
class Replay:
    """The progress of a replay: the steps begun so far, its lines, and its end."""

    begun: list[str] = field(default_factory=list)
    waits: bool = False
    stopping: bool = False
    said: list[str] = field(default_factory=list)
    ended: ReplayView | None = None

    def mark(self, step: str, marks: Marks) -> tuple[str, str]:
        """The state of a step as a mark with a word, and its style."""
        if self.ended is None:
            if self.begun and step == self.begun[-1]:
                return ("> next" if self.waits else "> now"), "bold"
            return (_marked(State.OK, "done", marks)) if step in self.begun else ("", "")
        if step == self.ended.step:
            return _marked(State.FAILED, "DIFFERS", marks)
        return _marked(State.OK, "the same", marks) if self._is_same(step, self.ended) else ("", "")

    def _is_same(self, step: str, ended: ReplayView) -> bool:
        """Whether a step was done and compared, before the first difference if there is one."""
        if ended.identical is None or step not in self.begun or ended.step == "start":
            return False
        # A difference at the ``end`` names no step: every step was the same.
        return ended.step not in self.begun or self.begun.index(step) < self.begun.index(ended.step)


def _marked(state: State, word: str, marks: Marks) -> tuple[str, str]:
    return f"{marks.glyphs.get(state, ' ')} {word}", STATE_STYLES[state]


def runbook_text(document: Mapping[str, Any]) -> Text:
    """The whole runbook: its subject, replacements with reasons, steps with requirements and proofs, and its end."""
    text = Text()
    text.append(f"{document['title']}\n", style=HEADING_STYLE)
    text.append(f"{REHEARSAL}\n", style=QUIET_STYLE)
    for section in sections(document):
        _section(text, section)
    text.append("\nsteps\n", style=HEADING_STYLE)
    for step in document["steps"]:
        _step(text, step)
        for word, key in _SAID:
            if step.get(key):
                _fact(text, word, str(step[key]), indent=8)
        if step.get("outcome") is not None and "failed" in step["outcome"]:
            text.append(f"        failed: {step['outcome']['failed']}\n", style=STATE_STYLES[State.FAILED])
    for section in _after(document):
        _section(text, section)
    return text


def replay_text(document: Mapping[str, Any], replay: Replay, marks: Marks) -> Text:
    """The steps with the progress of a replay; below them the replay's lines and its end."""
    text = Text()
    text.append(f"replay of {document['title']}\n", style=HEADING_STYLE)
    text.append("On a private simulator: no rack is changed, and no run is recorded.\n\n", style=QUIET_STYLE)
    for step in document["steps"]:
        mark, style = replay.mark(str(step["id"]), marks)
        text.append(f"  {mark:<{_MARK}}", style=style)
        _step(text, step, indent=0, when="then: ")
    if replay.said:
        text.append("\nprogress\n", style=HEADING_STYLE)
        text.append("".join(f"  {line}\n" for line in replay.said), style=QUIET_STYLE)
    if replay.ended is not None:
        _ended(text, replay.ended, marks)
    return text


def sections(document: Mapping[str, Any]) -> Iterator[Section]:
    """The parts before the steps; empty parts are omitted."""
    recorded = document["recorded"]
    header = [(label, str(recorded[key])) for label, key in _HEADER if recorded.get(key)]
    header.append(("inventory", f"{recorded['inventory']['path']}, SHA-256 {recorded['inventory']['digest'][:16]}"))
    yield Section("recorded", tuple(header))
    parameters = document.get("parameters") or {}
    yield Section(
        "parameters: values that may differ the next time",
        tuple((name, _parameter(said)) for name, said in parameters.items()),
    )
    replaced = document.get("replacements") or ()
    yield Section(
        "replacements", tuple((f"{r['job']}, rank {r['rank']}", f"{r['failed']} by {r['spare']}") for r in replaced)
    )
    yield Section("why", tuple(("", line) for line in document.get("why") or ()))
    circuits = document.get("circuits") or {}
    moved = [(word, _circuit(c)) for word, key in (("-", "remove"), ("+", "add")) for c in circuits.get(key, ())]
    kept = stay(len(circuits.get("keep", ())), "others on the same devices", "other on the same devices")
    yield Section("circuits", (*moved, *((("", kept),) if moved else ())))


def _after(document: Mapping[str, Any]) -> Iterator[Section]:
    """The parts after the steps."""
    undone = document.get("taken_back") or ()
    titles = {str(step["id"]): str(step["title"]) for step in document["steps"]}
    yield Section(
        "undone at once",
        tuple((f"step {each['step']}", titles.get(str(each["step"]), "")) for each in undone),
    )
    placed = (document.get("end") or {}).get("assignment") or {}
    before = (document.get("start") or {}).get("assignment") or {}
    moved = [(job, ", ".join(ranks)) for job, ranks in placed.items() if list(before.get(job, ())) != list(ranks)]
    yield Section("runs elsewhere afterwards", tuple(moved))


def _parameter(said: Mapping[str, Any]) -> str:
    default = said.get("default")
    return f"{said.get('what', '')} ({'must be given' if default is None else f'default {default}'})"


def _circuit(circuit: Mapping[str, Any]) -> str:
    ends = " to ".join(f"{end['lane']} (port {end['port']})" for end in circuit["ends"])
    loss = circuit.get("loss_db")
    return f"{circuit['id']}: {ends}" + (f", {loss:.2f} dB" if loss is not None else "")


def _step(text: Text, step: Mapping[str, Any], indent: int = 2, when: str = "") -> None:
    outcome, seconds = step.get("outcome"), step.get("seconds")
    state = "not reached" if outcome is None else "failed" if "failed" in outcome else "done"
    took = f", {seconds:.2f} s" if seconds is not None else ""
    text.append(f"{'':<{indent}}{step['id']:>2}. {step['title']}")
    style = STATE_STYLES[State.FAILED] if state == "failed" else QUIET_STYLE
    text.append(f"  {when}{state}{took}\n", style=style)


def _ended(text: Text, ended: ReplayView, marks: Marks) -> None:
    state = {True: State.OK, False: State.FAILED, None: State.UNKNOWN}[ended.identical]
    text.append(f"\n{marks.glyphs.get(state, '')} {ended.outcome}\n", style=STATE_STYLES[state])
    if ended.identical is False:
        _fact(text, "recorded", ended.recorded)
        _fact(text, "replayed", ended.replayed)


def _section(text: Text, section: Section) -> None:
    if section.facts:
        text.append(f"\n{section.heading}\n", style=HEADING_STYLE)
    for label, value in section.facts:
        _fact(text, label, value)


def _fact(text: Text, label: str, value: str, indent: int = 2) -> None:
    text.append(f"{'':<{indent}}{label:<{_LABEL}} ", style=QUIET_STYLE)
    text.append(f"{value}\n")
