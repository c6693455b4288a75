"""A plan as a difference that a person can read: what goes, what comes, at what power, by which steps, and why."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from lumctl.change import Plan
from lumctl.change.plan import Candidate, Cut, Do, PlannedChange, PlannedCircuit, Step
from lumctl.inventory.wiring import FREE

FEW_CELLS = 12
_TOUCHES_LIGHT = frozenset({Do.TRANSMIT, Do.PROGRAM, Do.VERIFY, Do.CONFIRM, Do.CHECK})


def plan_lines(plan: Plan, *, wide: bool = False) -> list[str]:
    """A plan as lines of text. ``wide`` adds every cell, the circuits that stay, and what each step requires."""
    made = datetime.fromtimestamp(plan.created_at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    lines = [f"{plan.id}  {plan.title}", f"target {plan.target}, rack {plan.rack}, made {made}"]
    lines += _replaced(plan)
    lines += _considered(plan)
    if any(step.do in _TOUCHES_LIGHT for step in plan.steps):
        lines += ["", "circuits", *_circuits(plan, wide=wide)]
        lines += ["", *_cells(plan, wide=wide)]
        lines += _cuts(plan)
    lines += ["", "steps", *_steps(plan, wide=wide)]
    lines += ["", f"expected time about {plan.expected_seconds:.1f} s ({_basis(plan)})"]
    lines += [f"warning: {warning}" for warning in plan.warnings]
    return lines


def _replaced(plan: Plan) -> list[str]:
    if not plan.replacements:
        return ["", *plan.why] if plan.why else []
    rows = [[f"{r.job} rank {r.rank}:", r.failed, "->", r.spare] for r in plan.replacements]
    return ["", "replacements", *_aligned(rows)]


def _considered(plan: Plan) -> list[str]:
    """The table of each failed accelerator's candidates, best first, then those that could not be taken."""
    lines: list[str] = []
    for failed in dict.fromkeys(candidate.failed for candidate in plan.candidates):
        here = [candidate for candidate in plan.candidates if candidate.failed == failed]
        lines += ["", f"spares considered for {failed}", *_aligned([_candidate(each) for each in here])]
    if plan.replacements and plan.why:
        lines += ["", "why", *(f"  {line}" for line in plan.why)]
    return lines


def _candidate(candidate: Candidate) -> list[str]:
    mark = "*" if candidate.chosen else " "
    place = str(candidate.rank) if candidate.rank is not None else "-"
    return [f"{mark} {place}", candidate.spare, "; ".join(candidate.reasons)]


def _circuits(plan: Plan, *, wide: bool) -> list[str]:
    before = {circuit.id: circuit for circuit in plan.remove}
    led = {c.id for c in plan.add if c.id in before and _ends(c) == _ends(before[c.id])}
    rows = [_circuit("-", circuit) for circuit in plan.remove if circuit.id not in led]
    rows += [_circuit("~" if c.id in led else "+", c, before.get(c.id)) for c in plan.add]
    rows += [_circuit(" ", circuit) for circuit in plan.keep if wide]
    count = len(plan.keep)
    told = (
        f"{count} others on the same devices stay as they are"
        if count != 1
        else ("1 other on the same device stays as it is")
    )
    return [*(_aligned(rows) if rows else ()), *([] if wide and count else [f"    {told}"])]


def _ends(circuit: PlannedCircuit) -> str:
    joined = "<->" if circuit.direction == "duplex" else "-->"
    return f" {joined} ".join(f"{end['lane']} (port {end['port']})" for end in circuit.ends)


def _circuit(sign: str, circuit: PlannedCircuit, before: PlannedCircuit | None = None) -> list[str]:
    """Ends, way, loss and expected power; of a circuit that had another way, the power before it too."""
    named = [f"{sign} {circuit.id}", _ends(circuit)]
    if circuit.loss_db is None or circuit.expected_rx_dbm is None:
        return [*named, "", "", "", ""]
    was = f"{before.expected_rx_dbm:.2f} -> " if before is not None and before.expected_rx_dbm is not None else ""
    margin = f"{circuit.margin_db:.1f} dB above its need" if circuit.margin_db is not None else ""
    way = f"{len(circuit.pucs)} PUCs" if circuit.pucs else ""
    return [*named, way, f"{circuit.loss_db:.2f} dB lost", f"{was}{circuit.expected_rx_dbm:.2f} dBm", margin]


def _cells(plan: Plan, *, wide: bool) -> list[str]:
    lines = []
    for device in dict.fromkeys(change.device for change in plan.changes):
        cells = [change for change in plan.changes if change.device == device]
        what = "ingress ports" if cells[0].is_join else "PUCs"
        lines.append(f"{what} of {device}: {len(cells)} written{_summed(cells)}")
        if wide or len(cells) <= FEW_CELLS:
            told = [f"{c.puc} {_mark(c.before)} to {_mark(c.after)}" for c in cells]
            lines += ["  " + ", ".join(told[at : at + FEW_CELLS]) for at in range(0, len(told), FEW_CELLS)]
    return lines or ["no cell changes"]


def _cuts(plan: Plan) -> list[str]:
    """The light paths that are cut, with the light on each."""
    rows = [[f"- {cut.device} port {cut.ingress} to port {cut.egress}", cut.light, _owned(cut)] for cut in plan.cuts]
    return ["", "light paths that are cut", *_aligned(rows)] if rows else []


def _owned(cut: Cut) -> str:
    if cut.owner is not None:
        return f"a circuit of {cut.owner}"
    return "of no job of the inventory" + ("" if cut.agreed else f": needs --cut {cut.ingress}")


def _summed(cells: Sequence[PlannedChange]) -> str:
    if cells[0].is_join:
        return ""
    after = [_mark(cell.after) for cell in cells if cell.before != cell.after]
    counts = [f"{after.count(word)} to {word}" for word in ("bar", "cross") if word in after]
    return f" ({', '.join(counts)})" if counts else ""


def _mark(state: str | None) -> str:
    words = {None: "?", "=": "bar", "x": "cross", FREE: "free"}
    return words.get(state) or f"port {state}"


def _steps(plan: Plan, *, wide: bool) -> Iterator[str]:
    width = max((len(_title(step)) for step in plan.steps), default=0)
    for step in plan.steps:
        seconds = f"{step.expected_seconds:6.2f} s" if step.expected_seconds else ""
        runs = plan.measured.get(step.id)
        basis = f"  median of {runs} runs" if runs and wide else ""
        yield f"  {step.id:>2}. {_title(step):<{width}}  {seconds}{basis}".rstrip()
        if wide:
            said = (("needs", step.precondition), ("proof", step.verification), ("undo", step.undo))
            yield from (f"        {what}: {text}" for what, text in said if text)


def _title(step: Step) -> str:
    return f"{step.title}{'' if step.required or step.do is Do.JOB else ' (if it can be reached)'}"


def _basis(plan: Plan) -> str:
    """Where the expected times come from."""
    runs = [plan.measured[step.id] for step in plan.steps if step.id in plan.measured]
    if not runs:
        return "by the inventory's settling times"
    span = str(runs[0]) if min(runs) == max(runs) else f"{min(runs)} to {max(runs)}"
    rest = sum(step.expected_seconds > 0 and step.id not in plan.measured for step in plan.steps)
    others = f"; {rest} steps by the inventory" if rest else ""
    return f"medians of the last {span} runs{others}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
