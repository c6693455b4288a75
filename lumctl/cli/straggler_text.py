"""What ``lumctl job stragglers`` says of a group of ranks: its lines, its table and its document."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import aimed
from lumctl.printable import counted
from lumctl.time_text import ago_text, iso_or_none, moment_with_age

if TYPE_CHECKING:
    from lumctl.collectives.advice import Advice
    from lumctl.health.states import Finding
    from lumctl.training.stragglers import GroupLateness, LateRankAction

RANKS = (
    OutputColumn("RANK", "rank", right=True),
    OutputColumn("ACCELERATOR", "accelerator"),
    OutputColumn("HOST", "host", gives_way=1),
    OutputColumn("LAST IN", "last", right=True),
    OutputColumn("95 %", "interval", right=True, gives_way=3),
    OutputColumn("GAP", "gap", right=True),
    OutputColumn("90TH", "p90", right=True),
    OutputColumn("OF COLLECTIVE", "of_collective", right=True, gives_way=2),
    OutputColumn("TREND", "trend", gives_way=4),
)
MOST_SHOWN = 8
"""The ranks in a table, those that were last most often; ``-o wide`` and documents have all."""
Places = Sequence[tuple[str | None, str | None]]
"""The accelerator and the host of each rank; ``None`` for a log without a job."""


def lines(
    group: "GroupLateness", places: Places, act: "LateRankAction", command: str, causes: "Sequence[Finding]"
) -> Iterator[str]:
    """What is said of a group: who is late, by how much, why, what to do, and whether a schedule helps."""
    from lumctl.quantity_text import seconds_text

    who = "all ranks" if not group.group else f"ranks {group.group}"
    when, now = "", time.time()
    if group.began is not None and group.ended is not None:
        when = f" since {moment_with_age(group.began, now)}, the last {ago_text(group.ended, now)}"
    yield f"{who}: {counted(len(group.steps), 'steps')}{when}"
    late = group.late
    if late is None:
        yield "no rank is late by more than chance"
    else:
        rank = group.ranks[late.rank]
        name, host = places[rank]
        where = "" if name is None else f" ({name} on {host})"
        share = f"{late.share.value:.0%} of the steps (95 %: {late.share.low:.0%} to {late.share.high:.0%})"
        of_step = f", {late.gap_median_s / group.step_s:.1%} of a step" if group.step_s else ""
        yield f"rank {rank}{where} is late: last in {share}"
        yield f"the others wait {seconds_text(late.gap_median_s)} for it{of_step}; {_trend(group, late.rank)}"
        if name is not None:
            told = [f"{each.component}: {each.evidence}" for each in causes]
            yield f"cause: {'; '.join(told) if told else 'health finds none on it, its lanes or its host'}"
        yield advice_line(act, command)
        if group.schedule is not None and act != "worked-around":
            yield from _schedule_lines(group, group.schedule, act)
    wrong_s = max((clock.error_s for clock in group.clocks.values()), default=0.0)
    if wrong_s:
        yield f"the clocks of the hosts are compared by the collectives: times may be wrong by {seconds_text(wrong_s)}"


def advice_line(act: "LateRankAction", command: str) -> str:
    """What to do, in one line."""
    return f"advice: {_WORDS[str(act)]}{': ' if command else ''}{command}"


_WORDS = {
    "nothing": "nothing",
    "look-at-host": "look at its host",
    "swap": "swap it",
    "use-schedule": "use the schedule",
    "worked-around": "nothing, for the ranks work around it by a schedule; to end that",
}


def _schedule_lines(group: "GroupLateness", schedule: "Advice", act: "LateRankAction") -> Iterator[str]:
    from lumctl.collectives.advice import arithmetic_lines, fit_line, gain_text
    from lumctl.quantity_text import bytes_text, seconds_text
    from lumctl.training.stragglers import LateRankAction

    verdict = (
        "use it" if act is LateRankAction.SCHEDULE else "it helps little" if schedule.recommended else "do not use it"
    )
    yield f"a schedule for a late rank, if the collectives are all-reduces: {verdict}: {gain_text(schedule.gain)}"
    yield from arithmetic_lines(schedule)
    if group.late is not None and schedule.gap_s < group.late.gap_median_s / 2:
        gap, most = seconds_text(schedule.gap_s), bytes_text(group.sizes[-1])
        yield f"the others wait {gap} in the all-reduce of {most}, and the rest in other collectives of the step"
    if group.links is not None:
        yield f"{fit_line(group.links)}, to all-reduces of {' and '.join(map(bytes_text, group.sizes))}"
    elif group.sizes:
        one = bytes_text(group.sizes[0])
        yield f"the job's all-reduces have one size, {one}: alpha cannot be told from beta, and is taken as 0"
    else:
        yield "the sizes of the collectives are not known: alpha cannot be told from beta, and is taken as 0"


def _trend(group: "GroupLateness", rank: int) -> str:
    from lumctl.quantity_text import seconds_text

    trend = group.by_rank[rank].trend_s
    if trend.low <= 0 <= trend.high:
        return "no trend"
    return f"{'rising' if trend.value > 0 else 'falling'} by {seconds_text(abs(trend.value))} a step"


def print_ranks(cx: Invocation, group: "GroupLateness", places: Places) -> None:
    """Print the table of a group's ranks, those that were last most often first."""
    from lumctl.quantity_text import seconds_text

    order = sorted(group.by_rank, key=lambda each: -each.times_last)
    shown = order if cx.out.format is OutputFormat.WIDE else order[:MOST_SHOWN]
    rows = [
        {
            "rank": group.ranks[each.rank],
            "accelerator": places[group.ranks[each.rank]][0],
            "host": places[group.ranks[each.rank]][1],
            "last": f"{each.share.value:.0%}",
            "interval": f"{each.share.low:.0%} to {each.share.high:.0%}",
            "gap": seconds_text(each.gap_median_s),
            "p90": seconds_text(each.gap_p90_s),
            "of_collective": f"{each.gap_share:.0%}",
            "trend": _trend(group, each.rank),
        }
        for each in shown
    ]
    cx.out.text()
    columns = [each for each in RANKS if each.key not in {"accelerator", "host"} or any(row[each.key] for row in rows)]
    cx.out.table(columns, rows)
    if len(shown) < len(order):
        cx.out.narrate(f"{len(order) - len(shown)} more ranks: -o wide")


def document(
    cx: Invocation,
    group: "GroupLateness",
    act: "LateRankAction",
    command: str,
    causes: "Sequence[Finding]",
    places: Places,
) -> dict[str, Any]:
    """A group as ``-o json`` prints it."""
    from lumctl.cli.collective_advise import interval_document
    from lumctl.cli.views import finding_document

    schedule = group.schedule
    return {
        "ranks": list(group.ranks),
        "steps": len(group.steps),
        "began": iso_or_none(group.began),
        "ended": iso_or_none(group.ended),
        "step_s": group.step_s or None,
        "late": None if group.named is None else group.ranks[group.named],
        "advice": str(act),
        "command": aimed(cx, command) or None,
        "causes": [finding_document(each) for each in causes],
        "schedule": None
        if schedule is None
        else {
            "recommended": schedule.recommended,
            "gain": interval_document(schedule.gain),
            "break_even_s": schedule.break_even_s,
            "best_gap_s": schedule.cost.before_s,
            "best_gain": schedule.cost.best_gain,
            "sizes_bytes": list(group.sizes),
            "alpha_s": None if group.links is None else interval_document(group.links.alpha_s),
            "beta_s_per_byte": None if group.links is None else interval_document(group.links.beta_s),
        },
        "by_rank": [
            {
                "rank": group.ranks[each.rank],
                "accelerator": places[group.ranks[each.rank]][0],
                "host": places[group.ranks[each.rank]][1],
                "times_last": each.times_last,
                "share": interval_document(each.share),
                "gap_median_s": each.gap_median_s,
                "gap_p90_s": each.gap_p90_s,
                "collective_s": each.collective_s,
                "gap_share": each.gap_share,
                "trend_s_per_step": interval_document(each.trend_s),
            }
            for each in group.by_rank
        ],
        "clocks": [
            {"clock": name, "offset_s": clock.offset_s, "error_s": clock.error_s}
            for name, clock in group.clocks.items()
        ],
    }
