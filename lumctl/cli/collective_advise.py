"""``lumctl collective advise``: whether a schedule for a late rank pays, from its gap and the costs of the links."""

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.collective_check import AlphaOption, BandwidthOption, BytesOption, link_of, read_limited, read_number
from lumctl.cli.collective_light import JobLightOption, light_of_job
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputFormat
from lumctl.cli.verbs import verb
from lumctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from lumctl.collectives.advice import Advice
    from lumctl.collectives.interval import Interval
    from lumctl.collectives.link_fit import LinkFit

    T = TypeVar("T")

_SEED = 0
"""Of the resampling, so that the same input gives the same advice."""


def register(app: typer.Typer) -> None:
    """Add ``advise`` to the commands of ``collective``."""
    verb(app, "advise")(command)


def command(
    cx: Invocation,
    ranks: Annotated[str | None, typer.Option("--ranks", metavar="N", help="How many ranks; a log knows it.")] = None,
    size: BytesOption = None,
    gap: Annotated[
        str | None, typer.Option("--gap", metavar="D", help="How long the others wait for the late rank, as 7ms.")
    ] = None,
    log: Annotated[
        str | None, typer.Option("--log", metavar="FILE", help="Who was late and by how much, from a log; - is stdin.")
    ] = None,
    skip: Annotated[
        int, typer.Option("--skip", metavar="K", min=0, help="Steps at the start of the log that do not count.")
    ] = 1,
    collectives: Annotated[
        str | None,
        typer.Option("--collectives", metavar="FILE", help="Measured ring all-reduces (CSV: bytes,seconds)."),
    ] = None,
    alpha: AlphaOption = None,
    bandwidth: BandwidthOption = None,
    job: JobLightOption = None,
) -> None:
    """Say whether the schedule for a late rank is faster than ring, with the arithmetic.

    It often is not: while one rank is late, the others must gain more by their head start than the schedule costs. The
    answer is "do not use the schedule" unless even the lower end of the 95 % interval is a gain, and it says what would
    have to change.

    The costs come from --collectives, to which alpha (time of a message) and beta (time of a byte) are fitted; or from
    --bandwidth and --alpha; or from the log, whose collectives are then taken as ring with the given --alpha.

    A log is a CSV file ``step,rank0_ms,rank1_ms,...`` with the time that each rank spent in the collective (the late
    one spends the least), or ``step,rank,enter_s,leave_s`` with a line for each rank of a step. --gap overrides its
    gaps.

    With --job, it also says which rounds of the schedule the light of the job carries, and what changing the light for
    the other rounds would cost: usually more than the collective itself.

    Exit code 0 whatever the advice is; ``-o name`` prints ``use`` or ``do-not``.
    """
    from lumctl.collectives import stragglar
    from lumctl.collectives.advice import advice_lines, fit_line, late_rank_lines

    if log is None:
        links = _links(ranks, size, collectives, alpha, bandwidth)
        advice = _from_gap(ranks, size, gap, links)
    else:
        given = bandwidth is not None or collectives is not None
        links = _links(ranks, size, collectives, alpha, bandwidth) if given else None
        advice = _from_log(log, skip, ranks, size, gap, alpha, links)
    light = None if job is None else light_of_job(cx, job, advice.ranks)
    schedule = stragglar(advice.ranks, advice.ranks - 1 if advice.late is None else advice.late.rank)
    if cx.out.structured:
        added = {} if light is None else {"light": light.document(schedule)}
        cx.out.document("collective-advice", {**_document(advice, links), **added})
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names(["use" if advice.recommended else "do-not"])
        return
    fitted = [fit_line(links)] if collectives is not None and links is not None else []
    late = [] if advice.late is None else late_rank_lines(advice.late)
    of_light = [] if light is None else light.lines(schedule, advice.cost.ring_s)
    for line in (*advice_lines(advice), *late, *fitted, *of_light):
        cx.out.text(cx.out.wrapped(line, "  "))


def _links(
    ranks: str | None, size: str | None, collectives: str | None, alpha: str | None, bandwidth: str | None
) -> "LinkFit | None":
    """The costs of links; ``None`` if only a log can tell them."""
    from lumctl.collectives.link_fit import LinkFit, fit_links
    from lumctl.collectives.measured_files import read_measurements

    if collectives is not None:
        if bandwidth is not None or alpha is not None:
            raise UsageError("--collectives gives the costs: leave out --bandwidth and --alpha")
        if size is None or ranks is None:
            raise UsageError("--collectives needs --ranks and --bytes, for which it is the cost")
        count, content = _ranks(ranks), read_limited(collectives)
        rng = Random(_SEED)  # noqa: S311 - no secret
        return _of_file(collectives, lambda: fit_links(read_measurements(content, count), rng))
    if bandwidth is None and alpha is None:
        return None
    return LinkFit(link_of(size, alpha, bandwidth)[0])


def _from_gap(ranks: str | None, size: str | None, gap: str | None, links: "LinkFit | None") -> "Advice":
    from lumctl.collectives.advice import advise
    from lumctl.quantity_text import read_bytes, read_time_s

    if ranks is None or size is None or gap is None:
        raise UsageError(
            "--ranks, --bytes and --gap are needed without a log",
            hint="example: lumctl collective advise --ranks 8 --bytes 256MiB --bandwidth 50GB/s --gap 12ms",
        )
    count, size_bytes, gap_s = _ranks(ranks), read_bytes(size, "--bytes"), read_time_s(gap, "--gap")
    if links is None:
        raise UsageError(
            "what does a collective cost?", hint="give --bandwidth (and --alpha), --collectives FILE or --log FILE"
        )
    return advise(count, size_bytes, gap_s, links)


def _from_log(
    log: str,
    skip: int,
    ranks: str | None,
    size: str | None,
    gap: str | None,
    alpha: str | None,
    links: "LinkFit | None",
) -> "Advice":
    from lumctl.collectives.advice import advise, advise_from_log, link_of_ring
    from lumctl.collectives.arrivals import late_rank
    from lumctl.collectives.link_fit import LinkFit
    from lumctl.collectives.measured_files import read_arrivals
    from lumctl.quantity_text import read_bytes, read_time_s

    content = read_limited(log)
    steps = _of_file(log, lambda: sorted(read_arrivals(content), key=lambda step: step.step)[skip:])
    late = _of_file(log, lambda: late_rank(steps))
    if ranks is not None and _ranks(ranks) != late.ranks:
        raise UsageError(f"--ranks: {log} has {late.ranks} ranks, not {ranks}")
    size_bytes = None if size is None else read_bytes(size, "--bytes")
    alpha_s = 0.0 if alpha is None else read_time_s(alpha, "--alpha")
    if gap is None:
        rng = Random(_SEED)  # noqa: S311 - no secret
        return advise_from_log(steps, late, rng, size_bytes=size_bytes, links=links, alpha_s=alpha_s)
    own = links or LinkFit(link_of_ring(late.ranks, size_bytes or 1.0, late.collective_s, alpha_s))
    advice = advise(late.ranks, size_bytes or 1.0, read_time_s(gap, "--gap"), own, late)
    return replace(advice, size_bytes=size_bytes)


def _ranks(text: str) -> int:
    from lumctl.collectives.schedule import require_ranks

    count = read_number(text, "--ranks")
    require_ranks(count)
    return count


def _of_file(file: str, read: "Callable[[], T]") -> "T":
    """What ``read`` returns; its errors begin with the file."""
    try:
        return read()
    except UsageError as error:
        raise UsageError(f"{file}: {error.message}", hint=error.hint) from None


def _document(advice: "Advice", links: "LinkFit | None") -> dict[str, Any]:
    cost = advice.cost
    return {
        "recommended": advice.recommended,
        "ranks": advice.ranks,
        "bytes": advice.size_bytes,
        "gap_s": advice.gap_s,
        "gain": interval_document(advice.gain),
        "break_even_s": advice.break_even_s,
        "best_gain": cost.best_gain,
        "best_gap_s": cost.before_s,
        "before_s": cost.before_s,
        "after_s": cost.after_s,
        "ring_s": cost.ring_s,
        "halving_doubling_s": advice.halving_doubling_s,
        "alpha_s": interval_document(links.alpha_s) if links else {"value": advice.link.alpha_s},
        "beta_s_per_byte": None if advice.size_bytes is None else advice.link.beta_s,
        "late_rank": _late_rank(advice),
    }


def _late_rank(advice: "Advice") -> dict[str, Any] | None:
    late = advice.late
    if late is None:
        return None
    return {
        "rank": late.rank,
        "steps": late.steps,
        "times_last": late.times_last,
        "share": interval_document(late.share),
        "gap_median_s": late.gap_median_s,
        "gap_p90_s": late.gap_p90_s,
        "collective_s": late.collective_s,
        "gap_share": late.gap_share,
        "trend_s_per_step": interval_document(late.trend_s),
    }


def interval_document(interval: "Interval") -> dict[str, float]:
    """An interval as data."""
    return {"value": interval.value, "low": interval.low, "high": interval.high}
