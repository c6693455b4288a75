"""The repair of each fault, with complete commands: for ``status`` and ``health explain``."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lumctl.cli.invocation import Invocation
from lumctl.cli.verbs import aimed
from lumctl.errors import LumctlError
from lumctl.health.remedy import Remedy, host_to_drain
from lumctl.health.states import ComponentHealth, HealthReport, State
from lumctl.inventory.folded_names import fold
from lumctl.printable import ranks_text

if TYPE_CHECKING:
    from lumctl.cli.output import Output
    from lumctl.context import Context, Observation

_SHOWN = 4
MOST_PLANNED = 8
"""Maximum number of planned repairs: a plan takes a tenth of a second, too long for a hundred faults."""


def remedy_documents(
    cx: Invocation, context: "Context", seen: "Observation", remedies: Iterable[Remedy]
) -> list[dict[str, Any]]:
    """The remedies as data, each with the command that plans it, or with the one that explains the fault.

    ``command`` is planned here to check that it works. It is empty if an operator must repair the cause, or if no swap
    can be planned now; then ``by_hand`` gives the reason. Only the first :data:`MOST_PLANNED` faults are planned. Both
    commands are
    complete: they name inventory and target if this command was given them as options.
    """
    documents = []
    offered: tuple[str, ...] = ()
    for at, remedy in enumerate(remedies):
        document = _document(cx, context, seen, remedy, plans=at < MOST_PLANNED)
        if document["command"] and remedy.replace and not remedy.avoid:
            if offered and at < MOST_PLANNED and _excludes(context, seen, offered, remedy.replace):
                choose = f"no swap replaces it together with {', '.join(offered)}: decide which comes first"
                document["by_hand"] = "; ".join(filter(None, (choose, document["by_hand"])))
            else:
                offered = tuple(dict.fromkeys((*offered, *remedy.replace)))
        documents.append(document)
    return documents


def _excludes(context: "Context", seen: "Observation", offered: Sequence[str], replaced: Sequence[str]) -> bool:
    """Whether the replacement of some accelerators leaves nothing that could replace others."""
    from lumctl.swap.suggestions import swap_obstacle

    if set(replaced) <= set(offered):
        return False
    with suppress(LumctlError):  # as in `_document`
        return swap_obstacle(context, seen, (*offered, *replaced)) is not None
    return False


def _document(
    cx: Invocation, context: "Context", seen: "Observation", remedy: Remedy, *, plans: bool
) -> dict[str, Any]:
    from lumctl.cli.views import remedy_document
    from lumctl.swap.failed_attempts import failed_attempt
    from lumctl.swap.spare_pool import lost_by
    from lumctl.swap.suggestions import way_to_free

    command, by_hand = remedy.command, remedy.by_hand.removeprefix(f"repair {remedy.cause}: ")
    refused = ""
    if plans and command:
        with suppress(LumctlError):  # a device or a store does not answer now; the command will report that itself
            # A command that would be refused must not be offered, so it is planned here.
            command, refused = _planned(context, seen, remedy)
    if plans and not command and not refused:
        with suppress(LumctlError):
            by_hand = "; ".join(filter(None, (by_hand, way_to_free(context, seen, remedy))))
    if refused:
        # Why light cannot avoid a PUC already says what to write about it in the inventory.
        alone = "" if remedy.kind == "puc" else remedy.without_swap
        by_hand = "; ".join(part for part in ((alone, refused) if remedy.replace else (refused, alone)) if part)
    if plans and remedy.replace:
        with suppress(LumctlError):
            attempt = failed_attempt(context, seen, remedy.replace)
            by_hand = "; ".join(filter(None, (attempt.words if attempt else "", by_hand)))
    # If no spare is left, nothing is replaced, but the ranks are down.
    down = remedy.replace or dict.fromkeys(lost_by(seen, remedy))
    hosts = dict.fromkeys(seen.inventory.accelerators[name].host for name in remedy.replace)
    return {
        **remedy_document(remedy, aimed(cx, command)),
        "doubt": "; ".join(filter(None, map(seen.life_signs, hosts))),
        "by_hand": aimed(cx, by_hand),
        "ranks": ["/".join(map(str, place)) for name in down if (place := seen.place_of(name))],
        "drain": _drain_document(cx, context, seen, remedy.drain, remedy.on_it, plans=plans) if remedy.drain else None,
        "explain": aimed(cx, f"lumctl health explain {_explained(remedy, seen)}"),
    }


def _drain_document(
    cx: Invocation, context: "Context", seen: "Observation", host: str, on_it: Sequence[str], *, plans: bool = True
) -> dict[str, Any]:
    """The ranks that run on a host to drain, and the command that moves them; without one, why none is planned now.

    ``on_it`` are the accelerators of these ranks.
    """
    from lumctl.swap.spare_pool import certainly_lost
    from lumctl.swap.suggestions import swap_obstacle

    every = [each.id for each in seen.inventory.accelerators_of(host) if seen.place_of(each.id) is not None]
    obstacle, names, why = None, every, ""
    with suppress(LumctlError):  # as in `_document`
        obstacle = swap_obstacle(context, seen, every, even_if_healthy=True) if plans else None
        # There may be no spare for the one that has failed, but for the others.
        if obstacle is not None and len(on_it) < len(every):
            obstacle, names = swap_obstacle(context, seen, on_it, even_if_healthy=True), list(on_it)
        dead = [name for name in dict.fromkeys(certainly_lost(seen)) if name not in every and seen.place_of(name)]
        in_need = [name for name in dead if plans and obstacle is None and swap_obstacle(context, seen, [name]) is None]
        # Healthy ranks take no spare from one that is down.
        if in_need and swap_obstacle(context, seen, (*names, *in_need), even_if_healthy=True) is not None:
            why = f"{', '.join(in_need)} may need the same spares and comes first"
    if obstacle is not None:
        why = obstacle.message.partition(": ")[0]
    moved = host if names is every else ",".join(names)
    command = f"lumctl swap plan --failed {moved} --even-if-healthy" if plans and not why else ""
    ranks = ranks_text(place for name in on_it if (place := seen.place_of(name)))
    words = f"before you drain {host}, move {ranks}{f'; no swap can move them now: {why}' if why else ''}"
    return {"host": host, "words": words, "command": aimed(cx, command)}


def repair_rows(
    cx: Invocation, context: "Context", seen: "Observation", among: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """What to do about accelerators that swaps took out of their jobs, with the commands; ``among`` limits them.

    They are no fault: their ranks run on spares. A return is planned before it is offered. Ranks that still run on a
    host that must be drained for the repair are moved first.
    """
    from lumctl.spares.ledger_text import advice
    from lumctl.swap.restoration import return_refusals
    from lumctl.swap.spare_pool import swapped_out

    entries = [entry for entry in swapped_out(seen) if among is None or entry.accelerator.id in among]
    found = advice(entries, str(cx.target), return_refusals(context, seen, entries))
    rows = [{"words": aimed(cx, said), "command": aimed(cx, command)} for said, command in found]
    for host, on_it in _hosts_to_drain(seen, [entry.accelerator.id for entry in entries]).items():
        told = _drain_document(cx, context, seen, host, on_it)
        rows.append({"words": told["words"], "command": told["command"]})
    return rows


def stopped_job_rows(cx: Invocation, context: "Context", seen: "Observation") -> list[dict[str, Any]]:
    """The jobs that an operator stopped for a run and has not resumed, with the commands that resume them."""
    from lumctl.jobs.stopped_jobs import stopped_jobs

    rows = []
    for each in stopped_jobs(context, seen):
        are = "is idle" if len(each.idle) == 1 else "are idle"
        how = each.advice.removesuffix(f": {each.command}")
        words = f"{each.words}: {', '.join(fold(each.idle))} {are}; {how}"
        row = {"job": each.job, "run": each.run.id, "idle": list(each.idle), "words": words}
        rows.append({**row, "command": aimed(cx, each.command)})
    return rows


def _hosts_to_drain(seen: "Observation", replaced: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The hosts to drain for the repair of replaced accelerators, with the accelerators there that run ranks."""
    report, found = seen.report, dict[str, tuple[str, ...]]()
    # What a remedy says about a host need not be said twice.
    told = {remedy.drain for remedy in seen.remedies}
    for name in replaced:
        parts = [report.accelerators[name], *(report.links[each.id] for each in seen.inventory.transponders_of(name))]
        for finding in (finding for part in parts for finding in part.findings):
            host, on_it = host_to_drain(report, seen.inventory, seen.places(), finding.component, finding.advice)
            if on_it and host not in told:
                found[host] = on_it
    return found


def _planned(context: "Context", seen: "Observation", remedy: Remedy) -> tuple[str, str]:
    """The command that plans a repair, if it is not refused now; else an empty text. The second text is the reason."""
    from lumctl.swap.suggestions import suggested_command

    found = suggested_command(context, seen, [remedy])
    if isinstance(found, str):
        return found, ""
    return "", "; ".join(filter(None, (found.message, found.hint)))


def _explained(remedy: Remedy, seen: "Observation") -> str:
    """The component for ``health explain``: the cause; for a rack an affected component, for a PUC its mesh."""
    cause = remedy.cause
    if remedy.kind == "puc":
        return cause.partition("/")[0]
    if cause in seen.inventory.racks:
        return next((name for name in remedy.components if name not in seen.inventory.racks), cause)
    return cause


def unread(report: HealthReport, covered: Sequence[Remedy]) -> tuple[Remedy, ...]:
    """Remedies for hosts and devices in state unknown, except for those in the remedies ``covered``.

    Those with the same advice share one remedy, whose cause is the first of them.
    """
    named = {name for remedy in covered for name in remedy.components}
    alike: dict[tuple[str, str], list[ComponentHealth]] = {}
    for health in _unknown(report):
        if health.id not in named and health.findings:
            alike.setdefault((health.kind, health.findings[0].advice), []).append(health)
    return tuple(
        Remedy(
            those[0].id,
            kind,
            State.UNKNOWN,
            tuple(health.id for health in those),
            those[0].findings[0].evidence + _likewise([health.id for health in those[1:]]),
            by_hand=advice,
        )
        for (kind, advice), those in alike.items()
    )


def _likewise(names: Sequence[str]) -> str:
    return f"; likewise {', '.join(fold(names))}" if names else ""


def _unknown(report: HealthReport) -> Iterator[ComponentHealth]:
    for group in (report.hosts, report.devices):
        yield from (health for health in group.values() if health.state is State.UNKNOWN)


def remedy_lines(out: "Output", remedy: Mapping[str, Any], indent: str = "") -> list[str]:
    """Lines about a fault and its repair: a complete command on its own line, and what an operator must do.

    The manual repair comes first if it may be enough.
    """
    inner = f"{indent}    "
    cause = f"{remedy['cause']} ({_ranks(remedy['ranks'])})" if remedy["ranks"] else remedy["cause"]
    lines = [out.wrapped(f"{indent}{out.state(remedy['state'])}  {cause}: {remedy['evidence']}", inner)]
    command = [f"{inner}{remedy['command']}"] if remedy["command"] else []
    if remedy["doubt"] and command:
        lines.append(out.wrapped(f"{inner}{remedy['doubt']}; if it is:", f"{inner}  "))
    then = "; if that does not help:" if remedy["hand_first"] and command else ""
    by_hand = [out.wrapped(f"{inner}{remedy['by_hand']}{then}", f"{inner}  ")] if remedy["by_hand"] else []
    lines += [*by_hand, *command] if remedy["hand_first"] else [*command, *by_hand]
    if drain := remedy["drain"]:
        lines.append(out.wrapped(f"{inner}{drain['words']}{':' if drain['command'] else ''}", f"{inner}  "))
        lines += [f"{inner}{drain['command']}"] if drain["command"] else []
    if not remedy["command"] and remedy["explain"]:
        lines.append(f"{inner}{remedy['explain']}")
    return lines


def row_lines(out: "Output", row: Mapping[str, Any]) -> list[str]:
    """Lines of something to do, with its command, if there is one, complete on its own line."""
    lines = [out.wrapped(f"  {row['words']}{':' if row['command'] else ''}", "    ")]
    return [*lines, f"      {row['command']}"] if row["command"] else lines


def _ranks(ranks: Sequence[str]) -> str:
    more = f" and {len(ranks) - _SHOWN} more" if len(ranks) > _SHOWN else ""
    return f"{', '.join(ranks[:_SHOWN])}{more}"
