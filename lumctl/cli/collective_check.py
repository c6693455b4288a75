"""``lumctl collective check``: whether a schedule in a file is an all-reduce, and what it costs beside ring."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.verbs import verb
from lumctl.errors import ExitCode, UsageError
from lumctl.printable import counted

if TYPE_CHECKING:
    from lumctl.collectives.cost import LinkCost, ScheduleCost
    from lumctl.collectives.machine import CollectiveProgram
    from lumctl.collectives.schedule import Schedule
    from lumctl.collectives.verification import ScheduleFault

BytesOption = Annotated[str | None, typer.Option("--bytes", metavar="S", help="The size of the buffer, as 256MiB.")]
AlphaOption = Annotated[
    str | None, typer.Option("--alpha", metavar="TIME", help="The time of a message of any size, as 5us; default: 0.")
]
BandwidthOption = Annotated[
    str | None, typer.Option("--bandwidth", metavar="B/s", help="The bandwidth between two ranks, as 300GB/s.")
]


def register(app: typer.Typer) -> None:
    """Add ``check`` to the commands of ``collective``."""
    verb(app, "check")(command)


def command(
    cx: Invocation,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A schedule, or a program of MSCCL or MSCCL++; - is stdin.")
    ],
    straggler: Annotated[
        str | None, typer.Option("--straggler", metavar="R", help="The late rank of a program, for its costs.")
    ] = None,
    delay: Annotated[
        str | None, typer.Option("--delay", metavar="D", help="Also the gain at this delay; needs --bytes.")
    ] = None,
    size: BytesOption = None,
    alpha: AlphaOption = None,
    bandwidth: BandwidthOption = None,
) -> None:
    """Check that a schedule is an all-reduce, and compare its costs with those of ring.

    FILE is what ``lumctl collective plan -o json`` prints, an algorithm of MSCCL (XML) or an execution plan of MSCCL++
    (JSON). At the end every rank must have each contribution to every chunk once. Each rank sends and receives once a
    round at most, and only what it holds by then. Programs are executed by lumctl's interpreter, not on GPUs; it also
    finds deadlocks, and chunks that two threads use without an order. Rounds, ranks and chunks count from 0.

    A schedule costs alpha for each round, and the time of its largest send. Ratios above 1 are faster than ring.
    Without --bytes and --bandwidth they are those of large buffers.

    Exit code 4: the schedule is broken; the first fault is printed with its round, rank and chunk.
    """
    from lumctl.quantity_text import read_time_s

    delay_s = None if delay is None else read_time_s(delay, "--delay")
    late = None if straggler is None else read_number(straggler, "--straggler")
    link, size_bytes = link_of(size, alpha, bandwidth)
    if delay_s is not None and (size is None or bandwidth is None):
        raise UsageError("--delay needs --bytes and --bandwidth")
    document, fault, cost = _examined(read_limited(file), file, late, link, size_bytes)
    gains = _gains(cost, delay_s)
    if cx.out.structured:
        times = {} if size is None else {"before_s": cost.before_s, "after_s": cost.after_s, "ring_s": cost.ring_s}
        cx.out.document("collective-check", {**document, "cost": None if fault else {**times, **gains}})
    elif fault:
        cx.out.text(f"broken: {fault}")
    else:
        for line in _lines(document, gains, delay):
            cx.out.text(cx.out.wrapped(line, "  "))
    if fault:
        raise typer.Exit(ExitCode.UNHEALTHY)


def _examined(
    content: bytes, file: str, late: int | None, link: "LinkCost", size_bytes: float
) -> "tuple[dict[str, Any], ScheduleFault | None, ScheduleCost]":
    from lumctl.collectives.machine import CollectiveProgram
    from lumctl.collectives.schedule_files import read_file

    try:
        found = read_file(content)
        if isinstance(found, CollectiveProgram):
            return _examined_program(found, late, link, size_bytes)
    except UsageError as error:
        raise UsageError(f"{file}: {error.message}", hint=error.hint) from None
    if late is not None and late != found.straggler:
        raise UsageError(f"--straggler: the straggler of this schedule is {found.straggler}")
    return _examined_schedule(found, link, size_bytes)


def _examined_schedule(
    schedule: "Schedule", link: "LinkCost", size_bytes: float
) -> "tuple[dict[str, Any], ScheduleFault | None, ScheduleCost]":
    from lumctl.collectives.cost import cost_of
    from lumctl.collectives.stragglar import lower_bound
    from lumctl.collectives.verification import first_fault

    fault = first_fault(schedule)
    is_bounded = schedule.straggler is not None and set(schedule.chunks_per_round) <= {0, 1}
    before = 0 if schedule.straggler is None else schedule.ranks - 2
    document = _document("schedule", schedule.algorithm, schedule.ranks, schedule.straggler, fault)
    document |= {"rounds_before": before, "rounds": len(schedule.rounds)}
    document["lower_bound"] = lower_bound(schedule.ranks) if is_bounded else None
    return document, fault, cost_of(schedule, size_bytes, link)


def _examined_program(
    program: "CollectiveProgram", late: int | None, link: "LinkCost", size_bytes: float
) -> "tuple[dict[str, Any], ScheduleFault | None, ScheduleCost]":
    from lumctl.collectives.cost import cost_of_rounds
    from lumctl.collectives.machine import run_program
    from lumctl.collectives.schedule import require_straggler

    if late is not None:
        require_straggler(late, program.ranks)
    run = run_program(program, late)
    document = _document("program", program.name, program.ranks, late, run.fault)
    document |= {"rounds_before": len(run.before), "rounds": len(run.after), "lower_bound": None}
    cost = cost_of_rounds(program.ranks, program.chunks, run.before, run.after, size_bytes, link)
    return document, run.fault, cost


def _document(kind: str, name: str, ranks: int, late: int | None, fault: "ScheduleFault | None") -> dict[str, Any]:
    where = None
    if fault is not None:
        where = {
            "round": fault.round,
            "rank": fault.rank,
            "chunk": fault.chunk,
            "place": fault.place or None,
            "message": fault.message,
        }
    return {"ok": fault is None, "fault": where, "kind": kind, "name": name, "ranks": ranks, "straggler": late}


def _gains(cost: "ScheduleCost", delay_s: float | None) -> dict[str, Any]:
    if not cost.after_s:  # a broken program may end before its first round
        return {}
    gains = {"gain_after_arrival": cost.gain_after, "gain_without_delay": cost.gain(0.0), "gain_best": cost.best_gain}
    return gains if delay_s is None else {**gains, "delay_s": delay_s, "gain_at_delay": cost.gain(delay_s)}


def _lines(document: dict[str, Any], gains: dict[str, Any], delay: str | None) -> list[str]:
    late = "" if document["straggler"] is None else f", straggler {document['straggler']}"
    when = " after the arrival" if late else ""
    bound = "" if document["lower_bound"] is None else f", lower bound {document['lower_bound']}"
    first = (
        f"ok: {document['name']}, {document['ranks']} ranks{late}: {counted(document['rounds'], 'rounds')}{when}{bound}"
    )
    if not late:
        return [first, f"{_speed(gains['gain_after_arrival'])}"]
    lines = [
        first,
        f"after the arrival: {_speed(gains['gain_after_arrival'])}",
        f"whole, without a delay: {_speed(gains['gain_without_delay'])}",
        f"whole, at the best delay: {_speed(gains['gain_best'])}",
    ]
    if delay is not None:
        lines.append(f"whole, with a delay of {delay}: {_speed(gains['gain_at_delay'])}")
    return lines


def _speed(gain: float) -> str:
    return f"{gain:.3f} of ring's speed{', a loss' if gain < 1 else ''}"


def read_limited(file: str) -> bytes:
    """The content of a file or of stdin, cut off just above the most that any reader takes.

    Raises:
        UsageError: it cannot be read.
    """
    from lumctl.collectives.schedule_files import MOST_BYTES

    try:
        if file == "-":
            return sys.stdin.buffer.read(MOST_BYTES + 1)
        with Path(file).open("rb") as opened:
            return opened.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def link_of(size: str | None, alpha: str | None, bandwidth: str | None) -> "tuple[LinkCost, float]":
    """The costs of a link and the size of the buffer, from their options; by default a large buffer.

    Raises:
        UsageError: an option is not valid, or alpha is given without the others.
    """
    from lumctl.collectives.cost import LinkCost
    from lumctl.quantity_text import read_bandwidth, read_bytes, read_time_s

    if (size is None) != (bandwidth is None) or (alpha is not None and size is None):
        raise UsageError("--bytes and --bandwidth are given together, and --alpha with them")
    if size is None or bandwidth is None:
        return LinkCost(0.0, 1.0), 1.0
    alpha_s = 0.0 if alpha is None else read_time_s(alpha, "--alpha")
    return LinkCost(alpha_s, 1 / read_bandwidth(bandwidth, "--bandwidth")), read_bytes(size, "--bytes")


def read_number(text: str, option: str) -> int:
    """Parse the number of a rank, or of ranks.

    Raises:
        UsageError: it is not a whole number; the message begins with ``option``.
    """
    digits = text.strip()
    if not (digits.isascii() and digits.removeprefix("-").isdecimal() and len(digits) <= len("-99999")):
        raise UsageError(f"{option}: {text!r} is not a whole number")
    return int(digits)
