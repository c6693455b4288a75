"""``lumctl collective``: schedules of an all-reduce for a late rank."""

from typing import TYPE_CHECKING, Annotated

import typer

from lumctl.cli import collective_advise, collective_check
from lumctl.cli.collective_check import read_number
from lumctl.cli.collective_light import JobLightOption, light_of_job
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.collectives.schedule import MOST_RANKS, Algorithm
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.problems import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lumctl.cli.collective_light import JobLight
    from lumctl.collectives import Schedule

app = noun_app(NOUNS["collective"].help)
_COLUMNS = (OutputColumn("ROUND", "round", right=True), OutputColumn("SENDS", "sends"))
_WITHOUT_LIGHT = OutputColumn("WITHOUT LIGHT", "without_light", right=True)
_TEXT, _MSCCL, _MSCCLPP = "text", "msccl", "mscclpp"


@verb(app, "plan", formats=(_TEXT, _MSCCL, _MSCCLPP), pages=True)
def plan(
    cx: Invocation,
    ranks: Annotated[str, typer.Argument(metavar="N", help=f"How many ranks, from 2 to {MOST_RANKS}.")],
    straggler: Annotated[
        str | None, typer.Option("--straggler", metavar="R", help="The late rank; default: the last one.")
    ] = None,
    algorithm: Annotated[
        str, typer.Option("--algorithm", metavar="NAME", help="stragglar, ring, halving-doubling or direct.")
    ] = Algorithm.STRAGGLAR.value,
    optimal: Annotated[
        bool, typer.Option("--optimal", help="Refuse a schedule that is not proven to have the fewest rounds.")
    ] = False,
    job: JobLightOption = None,
) -> None:
    """Print a schedule of an all-reduce: which rank sends which chunks to which, round by round.

    With stragglar, the others reduce-scatter while one rank is late, and the rounds are those after its arrival. They
    are N - 2 plus the logarithm of N to base 2, rounded up, which is proven to be the fewest, for every N and every
    late rank. Whether that is faster than ring depends on the delay; see ``lumctl collective advise``.

    A send with a + is added to what the receiver has, any other replaces it. Rounds, ranks and chunks count from 0.

    ``-o json`` is what ``lumctl collective check`` reads. ``-o msccl`` prints an algorithm for MSCCL (XML), ``-o
    mscclpp`` an execution plan for MSCCL++ (JSON), both with the reduce-scatter. lumctl has executed them in its own
    interpreter, and not run them on GPUs. ``-o name`` prints the number of rounds.

    With --job, the table shows for each round how many sends have no light between their ranks, and how often the light
    would have to change to carry all of them. Routes in the devices are not searched, so it is a lower bound.
    """
    schedule = _schedule(ranks, straggler, algorithm)
    if optimal and not schedule.proven:
        raise RefusedError(
            f"{algorithm} has {len(schedule.rounds)} rounds, and the lower bound is {schedule.lower_bound}: not proven",
            hint="leave out --optimal, or use --algorithm stragglar, which always is",
        )
    _print(cx, schedule, None if job is None else light_of_job(cx, job, schedule.ranks))


collective_check.register(app)
collective_advise.register(app)


def _schedule(ranks: str, straggler: str | None, algorithm: str) -> "Schedule":
    from lumctl import collectives

    count = read_number(ranks, "N")
    builders = {
        Algorithm.RING: collectives.ring,
        Algorithm.DIRECT: collectives.direct,
        Algorithm.HALVING_DOUBLING: collectives.halving_doubling,
    }
    if algorithm == Algorithm.STRAGGLAR:
        late = count - 1 if straggler is None else read_number(straggler, "--straggler")
        return collectives.stragglar(count, late)
    if algorithm not in builders:
        near = nearest(algorithm, list(Algorithm))
        hint = f"did you mean {near}?" if near else f"one of: {', '.join(Algorithm)}"
        raise UsageError(f"--algorithm: {algorithm!r} is not an algorithm", hint=hint)
    if straggler is not None:
        raise UsageError(f"--straggler is for stragglar only: {algorithm} waits for every rank")
    return builders[Algorithm(algorithm)](count)


def _print(cx: Invocation, schedule: "Schedule", light: "JobLight | None") -> None:
    from lumctl.collectives import documents

    added = {} if light is None else {"light": light.document(schedule)}
    if cx.out.format is OutputFormat.YAML:
        cx.out.document("collective", {**documents.schedule_document(schedule), **added})
    elif cx.out.format is OutputFormat.JSON:
        _lines(documents.schedule_json(schedule, added))
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([str(len(schedule.rounds))])
    elif cx.out.own_format == _TEXT:
        _lines(documents.schedule_text(schedule))
    elif cx.out.own_format:
        from lumctl.collectives.msccl import NOT_RUN, msccl_lines
        from lumctl.collectives.mscclpp import mscclpp_lines

        _lines(msccl_lines(schedule) if cx.out.own_format == _MSCCL else mscclpp_lines(schedule))
        cx.out.narrate(f"{documents.summary(schedule)}; {NOT_RUN}")
    else:
        rows = [
            {"round": str(number), "sends": "  ".join(map(documents.send_text, sends))}
            for number, sends in enumerate(schedule.rounds)
        ]
        if light is not None:
            for row, pairs in zip(rows, light.rounds(schedule).without_light, strict=True):
                row["without_light"] = str(len(pairs))
        cx.out.table(_COLUMNS if light is None else (*_COLUMNS, _WITHOUT_LIGHT), rows)
        for line in (documents.summary(schedule), *(light.lines(schedule) if light else ())):
            cx.out.narrate(line)


def _lines(lines: "Iterable[str]") -> None:
    """Print lines of numbers and our own words, which need no escapes; there may be a hundred million characters."""
    for line in lines:
        print(line)
