"""A schedule as a JSON document and as text, and the document read back."""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from lumctl.collectives.schedule import MOST_CHUNKS, MOST_RANKS, Schedule, ScheduleRound, Send
from lumctl.errors import UsageError
from lumctl.printable import counted, one_line

SCHEMA = "lumctl/collective/v1"
_OPERATIONS = {"reduce": True, "copy": False}
_LARGEST = 999_999
_SHOWN = 40
"""The most characters of a wrong value that a message repeats."""


def heading(schedule: Schedule) -> dict[str, Any]:
    """The document of a schedule without its rounds."""
    return {
        "algorithm": str(schedule.algorithm),
        "ranks": schedule.ranks,
        "straggler": schedule.straggler,
        "chunks": schedule.chunks,
        "owners": list(schedule.owners),
        "round_count": len(schedule.rounds),
        "lower_bound": schedule.lower_bound,
        "proven": schedule.proven,
    }


def schedule_document(schedule: Schedule) -> dict[str, Any]:
    """The document of a schedule. ``owners`` is empty for algorithms that wait for the last rank."""
    return {**heading(schedule), "rounds": [_round_document(each) for each in schedule.rounds]}


def schedule_json(schedule: Schedule, added: Mapping[str, Any] = MappingProxyType({})) -> Iterator[str]:
    """The lines of the document with its schema: one line for each round, because there may be a million sends.

    ``added`` are more fields, which stand before the rounds.
    """
    head = json.dumps({"schema": SCHEMA, **heading(schedule), **added}, indent=2).removesuffix("\n}")
    yield f'{head},\n  "rounds": ['
    last = len(schedule.rounds) - 1
    for number, each in enumerate(schedule.rounds):
        yield f"    {json.dumps(_round_document(each))}{',' if number < last else ''}"
    yield "  ]\n}"


def _round_document(sends: ScheduleRound) -> dict[str, Any]:
    return {
        "sends": [
            {"from": sender, "to": receiver, "chunks": list(chunks), "op": "reduce" if reduces else "copy"}
            for sender, receiver, chunks, reduces in sends
        ]
    }


def schedule_text(schedule: Schedule) -> Iterator[str]:
    """The lines of a schedule for people: every send of every round."""
    yield f"# {summary(schedule)}"
    for chunk, owner in enumerate(schedule.owners):
        yield f"rank {owner} owns chunk {chunk}"
    for number, each in enumerate(schedule.rounds):
        yield f"round {number}"
        for send in each:
            yield f"  {send_text(send)}"


def send_text(send: Send) -> str:
    """A send on one line; ``+`` marks chunks that the receiver adds to its own."""
    return f"{send.sender} -> {send.receiver}: {'+' if send.reduces else ''}{','.join(map(str, send.chunks))}"


def summary(schedule: Schedule) -> str:
    """What a schedule is, and how far from its lower bound, in one line."""
    late = "" if schedule.straggler is None else f", straggler {schedule.straggler}"
    count, bound = len(schedule.rounds), schedule.lower_bound
    least = "proven to be the fewest" if schedule.proven else f"lower bound {bound}, gap {count - bound}"
    when = "" if schedule.straggler is None else " after the arrival"
    return f"{schedule.algorithm}, {schedule.ranks} ranks{late}: {counted(count, 'rounds')}{when}, {least}"


def read_schedule(document: Any) -> Schedule:
    """A schedule from its document. Whether it is right is not checked here.

    ``lower_bound`` may be missing. Ranks and chunks of sends may be outside of the schedule.

    Raises:
        UsageError: a field is missing or has another type; the message begins with its place.
    """
    ranks = number(required(document, "ranks", ""), "ranks", 2, MOST_RANKS)
    straggler = required(document, "straggler", "")
    if straggler is not None:
        number(straggler, "straggler", 0, ranks - 1)
    owners = [number(each, f"owners[{at}]", 0, ranks - 1) for at, each in items(document, "owners", "")]
    if straggler is None and owners:
        raise UsageError("owners: found some, but a schedule without a straggler has none")
    if straggler is not None and (len(owners) != ranks - 1 or len({straggler, *owners}) != ranks):
        raise UsageError(f"owners: expected each of the {ranks - 1} ranks but the straggler once")
    chunks = ranks - 1 if straggler is not None else document.get("chunks", ranks)
    number(chunks, "chunks", 1, MOST_CHUNKS)
    rounds = [_round(each, f"rounds[{at}]") for at, each in items(document, "rounds", "")]
    bound = number(document.get("lower_bound", 0), "lower_bound", 0, _LARGEST)
    algorithm = one_line(str(document.get("algorithm", "schedule")), _SHOWN)
    return Schedule(algorithm, ranks, chunks, straggler, tuple(owners), tuple(rounds), bound)


def _round(document: Any, place: str) -> ScheduleRound:
    return [_send(each, f"{place}.sends[{at}]") for at, each in items(document, "sends", place)]


def _send(document: Any, place: str) -> Send:
    sender = number(required(document, "from", place), f"{place}.from", 0, _LARGEST)
    receiver = number(required(document, "to", place), f"{place}.to", 0, _LARGEST)
    chunks = tuple(number(each, f"{place}.chunks[{at}]", 0, _LARGEST) for at, each in items(document, "chunks", place))
    operation = required(document, "op", place)
    if operation not in ("reduce", "copy"):
        raise UsageError(f"{place}.op: found {shown(operation)}, expected 'reduce' or 'copy'")
    return Send(sender, receiver, chunks, _OPERATIONS[operation])


def required(document: Any, name: str, place: str) -> Any:
    """The field of an object at ``place``.

    Raises:
        UsageError: it is missing, or there is no object.
    """
    if not isinstance(document, dict):
        raise UsageError(f"{place or 'the document'}: found {shown(document)}, expected an object")
    if name not in document:
        raise UsageError(f"{place}{'.' if place else ''}{name} is missing")
    return document[name]


def items(document: Any, name: str, place: str) -> Iterator[tuple[int, Any]]:
    """The items of a list in an object at ``place``, with their numbers.

    Raises:
        UsageError: it is missing, or no list.
    """
    found = required(document, name, place)
    if not isinstance(found, list):
        raise UsageError(f"{place}{'.' if place else ''}{name}: found {shown(found)}, expected a list")
    return iter(enumerate(found))


def number(value: Any, place: str, least: int, most: int) -> int:
    """A value that is a whole number from ``least`` to ``most``.

    Raises:
        UsageError: it is not.
    """
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise UsageError(f"{place}: found {shown(value)}, expected a whole number from {least} to {most}")


def shown(value: Any) -> str:
    """A wrong value for a message, shortened."""
    return one_line(repr(value), _SHOWN)
