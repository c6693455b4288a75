"""A plan as a readable difference: circuits removed and added, expected power, steps, and reasons."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lumctl.change import Plan
from lumctl.change.plan import Candidate, Cut, Do, PlannedChange, PlannedCircuit, Step, counted_changes, stages
from lumctl.inventory.wiring import FREE
from lumctl.printable import counted, stay
from lumctl.time_text import moment_text

WIDTH = 79
"""The longest line, so that a plan fits 80 columns, a mail and a ticket. Only a longer word exceeds it."""
FEW_CELLS = 12
_TIMES_AT = 79
"""The column in which the expected time of a step ends."""
_TOUCHES_LIGHT = frozenset({Do.TRANSMIT, Do.PROGRAM, Do.VERIFY, Do.CONFIRM, Do.CHECK})
_STYLES = {"+": "green", "-": "red", "~": "yellow"}
_WARNING, _HEADING = "bold yellow", "bold"


class PlanLine(NamedTuple):
    """A line of a plan, and its style on a terminal; the text is complete without the style."""

    text: str
    style: str = ""


def plan_lines(plan: Plan, *, wide: bool = False, to_stop: Sequence[str] = ()) -> list[str]:
    """A plan as lines of text, see :func:`styled_lines`."""
    return [line.text for line in styled_lines(plan, wide=wide, to_stop=to_stop)]


def styled_lines(plan: Plan, *, wide: bool = False, to_stop: Sequence[str] = ()) -> list[PlanLine]:
    """A plan as lines: a summary and warnings, then what is removed (-), added (+) and changed (~), then the steps.

    ``wide`` adds every cell, the circuits that stay, and the requirements of each step. ``to_stop`` are the jobs that
    an operator must stop before the plan is applied.
    """
    lines = [
        *_text(f"{plan.id}  {plan.title}", "  ", _HEADING),
        PlanLine(made_line(plan)),
        *_text(summary(plan, to_stop), "  ", _HEADING),
    ]
    if plan.warnings:
        lines.append(PlanLine(""))
    for warning in plan.warnings:
        lines += _text(f"warning: {warning}", "  ", _WARNING)
    lines += _replaced(plan)
    lines += _changes(plan, wide=wide)
    lines += [PlanLine(""), PlanLine("steps", _HEADING), *_steps(plan, wide=wide)]
    return [*lines, PlanLine(""), *_text(expected_line(plan), "  ")]


def summary_lines(plan: Plan) -> list[str]:
    """What a plan replaces, or why it was made, and how long it takes."""
    return [line.text for line in _replaced(plan) if line.text] + [expected_line(plan)]


def change_lines(plan: Plan, *, wide: bool = False) -> list[str]:
    """The spares that were considered, and what the plan changes: circuits, cells, light paths that are cut."""
    return [line.text for line in _changes(plan, wide=wide)]


def made_line(plan: Plan) -> str:
    """The target and the rack of a plan, and when it was made."""
    return f"target {plan.target}, rack {plan.rack}, made {moment_text(plan.created_at)}"


def expected_line(plan: Plan) -> str:
    """The expected duration of a plan, and the basis of that estimate."""
    together = [stage for stage in stages(plan.steps) if stage[1:]]
    at_once = (
        f"steps {' and '.join(f'{s[0].id} to {s[-1].id}' for s in together)} at the same time; " if together else ""
    )
    return f"expected time about {plan.expected_seconds:.2f} s ({at_once}{_basis(plan)})"


def _changes(plan: Plan, *, wide: bool) -> list[PlanLine]:
    lines = _considered(plan)
    if any(step.do in _TOUCHES_LIGHT for step in plan.steps):
        lines += [PlanLine(""), PlanLine("circuits", _HEADING), *_circuits(plan, wide=wide)]
        lines += [PlanLine(""), *_cells(plan, wide=wide)]
        lines += _cuts(plan)
    return lines


def summary(plan: Plan, to_stop: Sequence[str] = ()) -> str:
    """What a plan does, in one line: circuits, cells, and the jobs that must be stopped first."""
    before, after = {c.id: c for c in plan.remove}, {c.id for c in plan.add}
    counts = (
        (sum(c.id in before for c in plan.add), "to move"),
        (sum(c.id not in before for c in plan.add), "to make"),
        (sum(c.id not in after for c in plan.remove), "to remove"),
    )
    parts = [f"{counted(count, 'circuits')} {what}" for count, what in counts if count]
    parts += map(_spelled_out, counted_changes(plan.changes))
    parts += [f"{counted(len(plan.cuts), 'light paths')} cut"] if plan.cuts else []
    if to_stop:
        parts.append(f"{'job' if len(to_stop) == 1 else 'jobs'} {', '.join(to_stop)} must be stopped first")
    return ", ".join(parts) or counted(len(plan.steps), "steps")


def _spelled_out(count: str) -> str:
    """A number of PUCs with the meaning of the word, which a reader of a plan meets here first."""
    return f"{count} (programmable unit {'cells' if count.endswith('s') else 'cell'})" if "PUC" in count else count


def _text(text: str, under: str, style: str = "") -> list[PlanLine]:
    """Wrap a text into lines of at most :data:`WIDTH`; lines after the first begin with ``under``."""
    wrapped = textwrap.wrap(
        text, WIDTH, subsequent_indent=under, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )
    return [PlanLine(line, style) for line in wrapped or [""]]


def _replaced(plan: Plan) -> list[PlanLine]:
    lines: list[PlanLine] = []
    if not plan.replacements:
        for reason in plan.why:
            lines += [*([] if lines else [PlanLine("")]), *_text(reason, "  ")]
        return lines
    for r in plan.replacements:
        lines += _text(f"  ~ replace {r.failed} by {r.spare} ({r.job} rank {r.rank})", "      ", _STYLES["~"])
    return [PlanLine(""), PlanLine("replacements", _HEADING), *lines]


def _considered(plan: Plan) -> list[PlanLine]:
    """A table for each failed accelerator: its candidates, best first, then spares that could not be used; then why."""
    lines: list[PlanLine] = []
    for failed in dict.fromkeys(candidate.failed for candidate in plan.candidates):
        here = [candidate for candidate in plan.candidates if candidate.failed == failed]
        lines += [PlanLine(""), PlanLine(f"spares considered for {failed}", _HEADING)]
        longest = max(len(each.spare) for each in here)
        for each in here:
            lines += _candidate(each, longest)
    if plan.replacements and plan.why:
        lines += [PlanLine(""), PlanLine("why", _HEADING)]
        lines += [line for reason in plan.why for line in _text(f"  {reason}", "    ")]
    return lines


def _candidate(candidate: Candidate, longest: int) -> list[PlanLine]:
    mark = "*" if candidate.chosen else " "
    place = str(candidate.rank) if candidate.rank is not None else "-"
    head = f"  {mark} {place:<2} {candidate.spare:<{longest}}  "
    return _text(f"{head}{'; '.join(candidate.reasons)}", " " * len(head))


def _circuits(plan: Plan, *, wide: bool) -> list[PlanLine]:
    if plan.slices and not wide and len(plan.add) + len(plan.remove) > FEW_CELLS:
        many = [("+", plan.add, "new"), ("-", plan.remove, "removed")]
        told = [
            f"  {sign} {counted(len(each), 'circuits')} {how}; -o wide lists them" for sign, each, how in many if each
        ]
        return [PlanLine(line, _STYLES[line.strip()[0]]) for line in told]
    before = {circuit.id: circuit for circuit in plan.remove}
    # With the same ends before and after, a circuit only takes another way: it is one line and not two.
    led = {c.id for c in plan.add if c.id in before and _ends(c) == _ends(before[c.id])}
    lines = [line for c in plan.remove if c.id not in led for line in _circuit("-", c)]
    lines += [line for c in plan.add for line in _circuit("~" if c.id in led else "+", c, before.get(c.id))]
    lines += [line for circuit in plan.keep if wide for line in _circuit(" ", circuit)]
    if wide and plan.keep:
        return lines
    on = "on the same device" if len(plan.keep) == 1 else "on the same devices"
    return [*lines, PlanLine(f"    {stay(len(plan.keep), f'others {on}', f'other {on}')}")]


def _ends(circuit: PlannedCircuit) -> str:
    joined = "<->" if circuit.direction == "duplex" else "-->"
    across = len({end["device"] for end in circuit.ends}) > 1
    ports = (f"{end['device']} port {end['port']}" if across else f"port {end['port']}" for end in circuit.ends)
    return f" {joined} ".join(f"{end['lane']} ({port})" for end, port in zip(circuit.ends, ports, strict=True))


def _circuit(sign: str, circuit: PlannedCircuit, before: PlannedCircuit | None = None) -> list[PlanLine]:
    """Lines about a circuit: its ends; below, its path, loss and expected power, and if it moves, the power before."""
    style = _STYLES.get(sign, "")
    lines = _text(f"  {sign} {circuit.id}  {_ends(circuit)}", "      ", style)
    if circuit.loss_db is None or circuit.expected_rx_dbm is None:
        return lines
    was = f"{before.expected_rx_dbm:.2f} -> " if before is not None and before.expected_rx_dbm is not None else ""
    parts = [counted(len(circuit.pucs), "PUCs")] if circuit.pucs else []
    parts += [f"fibre {', '.join(circuit.fibres)}"] if circuit.fibres else []
    parts += [f"{circuit.loss_db:.2f} dB lost", f"{was}{circuit.expected_rx_dbm:.2f} dBm"]
    parts += [f"margin {circuit.margin_db:.1f} dB"] if circuit.margin_db is not None else []
    return [*lines, *_text(f"      {', '.join(parts)}", "      ", style)]


def _cells(plan: Plan, *, wide: bool) -> list[PlanLine]:
    lines: list[PlanLine] = []
    for device in dict.fromkeys(change.device for change in plan.changes):
        cells = [change for change in plan.changes if change.device == device]
        what = "ingress ports" if cells[0].is_join else "PUCs"
        lines += _text(f"{what} of {device}: {len(cells)} written{_summed(cells)}", "  ", _HEADING)
        if wide or len(cells) <= FEW_CELLS:
            told = ", ".join(f"{c.puc} {_mark(c.before)} to {_mark(c.after)}" for c in cells)
            lines += _text(f"  {told}", "  ", _STYLES["~"])
    return lines or [PlanLine("no cell changes")]


def _cuts(plan: Plan) -> list[PlanLine]:
    """The light paths that are cut, with the light power on each."""
    if not plan.cuts:
        return []
    rows = [
        f"  - {cut.device} port {cut.ingress} to port {cut.egress}  {cut.light}  {_owned(cut)}" for cut in plan.cuts
    ]
    lines = [line for row in rows for line in _text(row, "      ", _STYLES["-"])]
    return [PlanLine(""), PlanLine("light paths that will be cut", _HEADING), *lines]


def _owned(cut: Cut) -> str:
    if cut.owner is not None:
        return f"a circuit of {cut.owner}"
    return "of no job in the inventory" + ("" if cut.agreed else f": needs --cut {cut.ingress}")


def _summed(cells: Sequence[PlannedChange]) -> str:
    if cells[0].is_join:
        return ""
    after = [_mark(cell.after) for cell in cells if cell.before != cell.after]
    counts = [f"{after.count(word)} to {word}" for word in ("bar", "cross") if word in after]
    return f" ({', '.join(counts)})" if counts else ""


def _mark(state: str | None) -> str:
    words = {None: "?", "=": "bar", "x": "cross", FREE: "free"}
    return words.get(state) or f"port {state}"


def _steps(plan: Plan, *, wide: bool) -> Iterator[PlanLine]:
    for stage in stages(plan.steps):
        if plan.slices and not wide and len(stage) > FEW_CELLS:
            first, last, does = stage[0], stage[-1], stage[0].title.partition(" ")[0]
            what = "transmitters" if first.do is Do.TRANSMIT else "devices"
            text = f"  {first.id:>2}. to {last.id}. {does} {len(stage)} {what} at once; -o wide lists them"
            yield PlanLine(
                f"{text}  {f'{max(s.expected_seconds for s in stage):.2f} s'.rjust(_TIMES_AT - len(text) - 2)}"
            )
            continue
        yield from _stage(plan, stage, wide=wide)


def _stage(plan: Plan, stage: Sequence[Step], *, wide: bool) -> Iterator[PlanLine]:
    for step in stage:
        # Each line leaves room for the time, which ends the last one.
        *lines, last = textwrap.wrap(
            f"  {step.id:>2}. {_title(step)}",
            _TIMES_AT - len("  0.00 s"),
            subsequent_indent="      ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield from map(PlanLine, lines)
        seconds = f"{step.expected_seconds:.2f} s" if step.expected_seconds else ""
        yield PlanLine(f"{last}  {seconds.rjust(_TIMES_AT - len(last) - 2)}".rstrip())
        runs = plan.measured.get(step.id)
        if wide:
            basis = f"median of {counted(runs, 'runs')}" if runs else ""
            said = (("needs", step.precondition), ("proof", step.verification), ("undo", step.undo), ("time", basis))
            for what, text in said:
                yield from _text(f"        {what}: {text}", "          ") if text else ()


def _title(step: Step) -> str:
    return f"{step.title}{'' if step.required or step.do is Do.JOB else ' (if it can be reached)'}"


def _basis(plan: Plan) -> str:
    """The basis of the expected times."""
    runs = [plan.measured[step.id] for step in plan.steps if step.id in plan.measured]
    if not runs:
        return "by the inventory's settling times"
    span = str(runs[0]) if min(runs) == max(runs) else f"{min(runs)} to {max(runs)}"
    rest = sum(step.expected_seconds > 0 and step.id not in plan.measured for step in plan.steps)
    others = f"; {counted(rest, 'steps')} by the inventory" if rest else ""
    return f"medians of the last {span} runs{others}"
