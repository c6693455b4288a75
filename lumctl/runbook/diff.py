"""The difference between two runbooks, or a runbook and a plan: steps, circuits, PUC states, outcomes, times."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any

from lumctl.inventory.wiring import placed_words
from lumctl.runbook.comparison import steady
from lumctl.runbook.difference_text import outcomes_apart, placed_apart, some

_STATE = {"=": "bar", "x": "cross", "-": "nothing", None: "not known"}
_BESIDES = frozenset(
    {"id", "outcome", "title", "expected_seconds", "at", "seconds", "stage", "precondition", "verification", "undo"}
)
"""The fields of a step that are compared besides its action."""


@dataclass(frozen=True, slots=True)
class Unlike:
    """One difference: its ``part``, its name, and its value on either side (``None``: absent).

    ``where`` is the device that it concerns; empty if none or several.
    """

    part: str
    what: str
    a: str | None
    b: str | None
    where: str = ""


def unlike(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Unlike, ...]:
    """Every difference between two documents of runbooks or plans, part by part.

    Durations are compared if both were recorded to the end: they are shown, but never count as a difference.
    """
    return (
        *_about(a, b),
        *_parameters(a, b),
        *_placements(a, b),
        *_circuits(a, b),
        *_steps(a, b),
        *_outcomes(a, b),
        *_cells(a, b),
    )


def times(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[tuple[str, float | None, float | None], ...]:
    """The total duration of each run, and the duration that its plan expects, in seconds."""
    expected = ("expected", _seconds(a, "expected_seconds"), _seconds(b, "expected_seconds"))
    found = (expected, ("recorded", _took(a), _took(b)))
    return tuple((name, one, other) for name, one, other in found if one is not None or other is not None)


def _about(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Unlike]:
    for what, one, other in (
        ("title", a.get("title"), b.get("title")),
        ("rack", _recorded(a, "rack"), _recorded(b, "rack")),
        ("target", _recorded(a, "target"), _recorded(b, "target")),
        ("inventory", _inventory(a), _inventory(b)),
    ):
        if one != other and None not in (one, other):
            yield Unlike("about", what, str(one), str(other))
    if _is_run(a) and _is_run(b) and _recorded(a, "outcome") != _recorded(b, "outcome"):
        yield Unlike("outcome", "the run", str(_recorded(a, "outcome")), str(_recorded(b, "outcome")))


def _parameters(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Unlike]:
    mine, theirs = a.get("parameters") or {}, b.get("parameters") or {}
    for name in dict.fromkeys((*mine, *theirs)):
        if mine.get(name) != theirs.get(name):
            yield Unlike("parameters", str(name), _default(mine.get(name)), _default(theirs.get(name)))


def _placements(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Unlike]:
    for section in ("start", "end"):
        mine = (a.get(section) or {}).get("assignment") or {}
        theirs = (b.get(section) or {}).get("assignment") or {}
        if section not in a or section not in b:
            continue
        for job in dict.fromkeys((*mine, *theirs)):
            if list(mine.get(job, ())) != list(theirs.get(job, ())):
                if job in mine and job in theirs:
                    yield Unlike(section, f"where {placed_words(job)}", *placed_apart(job, mine[job], theirs[job]))
                else:
                    yield Unlike(section, f"where {placed_words(job)}", _ranks(mine.get(job)), _ranks(theirs.get(job)))


def _circuits(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Unlike]:
    for kind in ("add", "remove", "keep"):
        mine, theirs = _by_id((a.get("circuits") or {}).get(kind)), _by_id((b.get("circuits") or {}).get(kind))
        for name in dict.fromkeys((*mine, *theirs)):
            one, other = mine.get(name), theirs.get(name)
            if _way(one) != _way(other):
                devices = {device for each in (one, other) for device in _devices(each)}
                where = devices.pop() if len(devices) == 1 else ""
                yield Unlike("circuits", f"{kind} {name}", _way(one), _way(other), where)


def _steps(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Unlike]:
    """Steps that only one document has, found like the lines in a diff of texts, and steps with different data."""
    mine, theirs = _step_list(a), _step_list(b)
    # From 200 steps on, `autojunk` would ignore steps that occur often.
    matcher = SequenceMatcher(None, [_key(s) for s in mine], [_key(s) for s in theirs], autojunk=False)
    for tag, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        if tag == "equal":
            continue
        ours, others = mine[a_from:a_to], theirs[b_from:b_to]
        for at in range(max(len(ours), len(others))):
            one = ours[at] if at < len(ours) else None
            other = others[at] if at < len(others) else None
            step = one or other or {}
            yield Unlike("steps", f"step {step.get('id', '?')}", _told(one), _told(other), _device(step))


def _outcomes(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Unlike]:
    """Different outcomes of steps in both documents; if one document was never run, there is nothing to compare."""
    if not (_is_run(a) and _is_run(b)):
        return
    theirs = {_key(step): step for step in _step_list(b)}
    for step in _step_list(a):
        other = theirs.get(_key(step))
        if other is not None and steady(step.get("outcome")) != steady(other.get("outcome")):
            told = outcomes_apart(steady(step.get("outcome")), steady(other.get("outcome")))
            yield Unlike("outcomes", str(step.get("title")), *told, _device(step))


def _cells(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Unlike]:
    """Cells that the two documents write to different states, or that only one of them writes."""
    mine, theirs = _written(a), _written(b)
    for cell in dict.fromkeys((*mine, *theirs)):
        if mine.get(cell) != theirs.get(cell):
            one = f"to {_state(mine[cell])}" if cell in mine else None
            other = f"to {_state(theirs[cell])}" if cell in theirs else None
            yield Unlike("cells", f"{cell[0]}/{cell[1]}", one, other, cell[0])


def _written(document: Mapping[str, Any]) -> dict[tuple[str, int], str]:
    return {
        (step["data"]["device"], change[0]): change[2]
        for step in _step_list(document)
        if step.get("do") == "program"
        for change in step["data"]["changes"]
    }


def _step_list(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return document.get("steps") or document.get("intents") or ()


def _key(step: Mapping[str, Any]) -> str:
    """The identity of a step: its action and its target. Texts, ids and outcomes do not count."""
    said = {k: v for k, v in step.items() if k not in _BESIDES}
    # An edited runbook may leave it out; true is the default.
    said.setdefault("required", True)
    # `steady` sorts lists, so that it cannot tell a change from bar to cross from its opposite.
    return repr(steady(said)) + repr(said.get("data", {}).get("changes"))


def _told(step: Mapping[str, Any] | None) -> str | None:
    if step is None:
        return None
    said = step.get("title")
    return str(said or ", ".join(f"{key} {value}" for key, value in step.items()))


def _device(step: Mapping[str, Any]) -> str:
    """The device that a step is about; empty if it is about none or several."""
    data = step.get("data") or {}
    devices: Sequence[str] = data.get("devices") or ()
    return str(data.get("device") or (devices[0] if len(devices) == 1 else ""))


def _by_id(circuits: Any) -> dict[str, Mapping[str, Any]]:
    return {circuit["id"]: circuit for circuit in circuits or ()}


def _way(circuit: Mapping[str, Any] | None) -> str | None:
    if circuit is None:
        return None
    ends = " to ".join(f"{end['lane']} (port {end['port']})" for end in circuit["ends"])
    fibres = circuit.get("fibres") or ()
    path = [
        name
        for at, segment in enumerate(circuit.get("segments") or ())
        for name in (_segment(segment), *fibres[at : at + 1])
    ]
    return f"{ends} through {', '.join(path)}" if path else ends


def _segment(segment: Mapping[str, Any]) -> str:
    pucs = ", ".join(map(str, segment.get("pucs") or ()))
    return f"{segment['device']} (PUCs {pucs})" if pucs else str(segment["device"])


def _devices(circuit: Mapping[str, Any] | None) -> frozenset[str]:
    """The devices on the path of a circuit; those of its ends if the path is not known."""
    if circuit is None:
        return frozenset()
    return frozenset(str(part["device"]) for part in circuit.get("segments") or circuit["ends"])


def _state(mark: Any) -> str:
    return _STATE.get(mark) or f"port {mark}"


def _is_run(document: Mapping[str, Any]) -> bool:
    return "recorded" in document


def _recorded(document: Mapping[str, Any], key: str) -> Any:
    return document["recorded"].get(key) if _is_run(document) else document.get(key)


def _inventory(document: Mapping[str, Any]) -> Any:
    return document["recorded"]["inventory"]["digest"] if _is_run(document) else document.get("inventory_digest")


def _default(parameter: Any) -> str | None:
    return None if parameter is None else str(parameter.get("default"))


def _ranks(names: Any) -> str | None:
    return None if names is None else some(list(names))


def _seconds(document: Mapping[str, Any], key: str) -> float | None:
    value = document.get(key)
    return None if value is None else float(value)


def _took(document: Mapping[str, Any]) -> float | None:
    recorded = document.get("recorded") or {}
    if "seconds" in recorded or not recorded.get("ended"):
        return _seconds(recorded, "seconds")
    # A runbook of an earlier version has no seconds.
    took = datetime.fromisoformat(recorded["ended"]) - datetime.fromisoformat(recorded["at"])
    return round(took.total_seconds(), 3)


@dataclass(frozen=True, slots=True)
class Count:
    """How many differences of a part concern one device: changed ones, and those on one side only."""

    part: str
    where: str
    unlike: int
    only_a: int
    only_b: int


def counted(found: Sequence[Unlike]) -> tuple[Count, ...]:
    """The number of differences by part, in the order of the parts, and by device."""
    parts = list(dict.fromkeys(each.part for each in found))
    by_place: dict[tuple[str, str], list[Unlike]] = {}
    for each in found:
        by_place.setdefault((each.part, each.where), []).append(each)
    return tuple(
        Count(
            part,
            where,
            unlike=sum(each.a is not None and each.b is not None for each in those),
            only_a=sum(each.b is None for each in those),
            only_b=sum(each.a is None for each in those),
        )
        for (part, where), those in sorted(by_place.items(), key=lambda item: (parts.index(item[0][0]), item[0][1]))
    )
