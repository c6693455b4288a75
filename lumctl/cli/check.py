"""``lumctl check``: one line and an exit code, by the convention of monitoring plug-ins.

The codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. Every error, including a wrong option, is UNKNOWN and never CRITICAL.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from lumctl.cli.forgotten_target import forgotten_target
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.verbs import PlainCommand, noun_app, verb
from lumctl.errors import LumctlError, UsageError
from lumctl.files import write_whole
from lumctl.health.states import SEVERITY, Finding, Incident, State, gravest_first, worst
from lumctl.inventory.sharing import LEAST_SPARES
from lumctl.printable import printable

if TYPE_CHECKING:
    from typer import _click as click

    from lumctl.context import Observation
    from lumctl.health.states import CircuitHealth, ComponentHealth
    from lumctl.inventory.model import Inventory

EXIT_CODES = {State.OK: 0, State.DISABLED: 0, State.DEGRADED: 1, State.FAILED: 2, State.UNKNOWN: 3}
WORDS = {0: "OK", 1: "WARNING", 2: "CRITICAL", 3: "UNKNOWN"}
_ILL = frozenset(SEVERITY[SEVERITY.index(State.UNKNOWN) :])
_SHORT = 60
"""Longest rack list and fault text in the short form, in characters."""
NAMED_AT_MOST = 3
"""The line goes to pagers and chat rooms, so it names only this many of the worst faults; ``status`` names all."""
Rank = tuple[int, bool, int]
"""Sort key of a part of the line: severity of its state, whether it affects a job, then gravity; the worst is first."""


def line(observation: "Observation", state: State, low: Sequence[str] = ()) -> str:
    """The verdict in one line: incidents and other faults, worst first, with the findings of the worst state.

    ``low`` are the pools with few spares left and the jobs that were not resumed, in words.

    Members of an incident are not repeated; acknowledged findings and maintenance are only counted.
    """
    from lumctl.cli.views import summary
    from lumctl.health.observation import acknowledged_count

    wrong = [*_incidents(observation), *_components(observation, state)]
    wrong += [(_WARNING, f"run {run} is unfinished") for run in observation.unfinished]
    wrong += [(_WARNING, text) for text in low]
    wrong.sort(key=lambda part: part[0], reverse=True)
    told = [text for _, text in wrong] or [_well(summary(observation))]
    if acknowledged := acknowledged_count(observation):
        told.append(f"{acknowledged} acknowledged")
    at_work = dict.fromkeys(window.component for window in observation.windows if window.open_at(observation.at))
    told += [f"maintenance on {component}" for component in at_work]
    if observation.not_kept is not None:
        told.append(f"not remembered: {observation.not_kept}")
    racks = ",".join(observation.inventory.racks)
    return f"LUMCTL {WORDS[EXIT_CODES[state]]} - {plain(racks)}: {plain('; '.join(told))}"


def _incidents(observation: "Observation") -> Iterator[tuple[Rank, str]]:
    """The worst incidents by name, and the number of others, each with its sort key."""
    from lumctl.cli.views import incident_line
    from lumctl.health.observation import standing_incidents

    incidents = standing_incidents(observation)
    for incident in incidents[:NAMED_AT_MOST]:
        yield _incident_rank(observation, incident), incident_line(incident)
    if others := incidents[NAMED_AT_MOST:]:
        yield _incident_rank(observation, others[0]), f"{len(others)} more incidents"


def _components(observation: "Observation", state: State) -> Iterator[tuple[Rank, str]]:
    """Counts of faulty components outside incidents by state and group; for the verdict's state with findings."""
    from lumctl.health.observation import counted_states, own_trouble, standing_incidents

    counted = counted_states(observation)
    incidents = standing_incidents(observation)
    for bad in reversed(SEVERITY[SEVERITY.index(State.UNKNOWN) :]):
        for name, group in observation.report.groups().items():
            those = [h for h in group.values() if counted[name][h.id] is bad and own_trouble(h, incidents)]
            if those:
                findings = gravest_first(finding for h in those if (finding := _telling(h)) is not None)
                named = _named(findings) if bad is state else ""
                gravity = findings[0].gravity if findings else 0
                affects = any(health.id in observation.job_parts for health in those)
                yield (SEVERITY.index(bad), affects, gravity), f"{len(those)} of {len(group)} {name} {bad}{named}"


def short_line(observation: "Observation", state: State, low: Sequence[str] = ()) -> str:
    """The verdict for the lock screen of a phone: the worst fault by name and rule, and the number of others."""
    from lumctl.cli.views import summary
    from lumctl.health.observation import counted_states, own_trouble, standing_incidents

    incidents = standing_incidents(observation)
    counted = counted_states(observation)
    found = [(_incident_rank(observation, each), f"{each.cause} {each.rule}") for each in incidents]
    for name, group in observation.report.groups().items():
        for health in group.values():
            finding = _telling(health)
            if finding is not None and counted[name][health.id] in _ILL and own_trouble(health, incidents):
                affects = health.id in observation.job_parts
                rank = (SEVERITY.index(counted[name][health.id]), affects, finding.gravity)
                found.append((rank, f"{health.id} {finding.rule}"))
    found += [(_WARNING, f"{run} unfinished") for run in observation.unfinished]
    found += [(_WARNING, text) for text in low]
    found.sort(key=lambda each: each[0], reverse=True)
    told = found[0][1] if found else _well(summary(observation))
    more = f", {len(found) - 1} more" if len(found) > 1 else ""
    place = _shortened(plain(",".join(observation.inventory.racks)))
    return f"{WORDS[EXIT_CODES[state]]} {place}: {_shortened(plain(told))}{more}"


def _incident_rank(observation: "Observation", incident: Incident) -> Rank:
    affects = not observation.job_parts.isdisjoint((incident.cause, *incident.members))
    return SEVERITY.index(incident.state), affects, incident.gravity


_WARNING = (SEVERITY.index(State.DEGRADED), False, 0)
"""Sort key of an unfinished run and of few spares: these are warnings, and come after the faults that are warnings."""


def _shortened(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"


def _telling(health: "ComponentHealth | CircuitHealth") -> Finding | None:
    """The worst finding without an acknowledgement."""
    return next((finding for finding in health.findings if finding.acknowledged is None), None)


def _well(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Counts of ok accelerators and circuits; if there are none (a capture may hold only ports), of links and hosts."""
    those = [name for name in ("accelerators", "circuits") if sum(counts[name].values())] or ["links", "hosts"]
    told = [f"{counts[name][State.OK]} {name if counts[name][State.OK] != 1 else name[:-1]}" for name in those]
    return f"{', '.join(told)} ok"


def _named(findings: Sequence[Finding]) -> str:
    named = [f"{finding.component}: {finding.evidence}" for finding in findings[:NAMED_AT_MOST]]
    if len(findings) > NAMED_AT_MOST:
        named.append(f"{len(findings) - NAMED_AT_MOST} more")
    return f" ({', '.join(named)})" if named else ""


def plain(text: str) -> str:
    """The text on one line, with ``/`` instead of ``|``, which would start the performance data."""
    return printable(" ".join(text.replace("|", "/").split()))


class MonitoringPlugin(PlainCommand):
    """A command that reports every error, including wrong options, as one line with exit code 3."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: "click.Context | None" = None, **extra: Any
    ) -> "click.Context":
        """Parse the command line; an error ends with :func:`unknown`."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except typer.Exit:
            raise
        except Exception as error:  # noqa: BLE001 - the convention knows no other way to fail
            unknown(error)

    def invoke(self, ctx: "click.Context") -> Any:
        """Run the command; an error ends with :func:`unknown`."""
        try:
            return super().invoke(ctx)
        # The verdict itself leaves as an Exit.
        except typer.Exit:
            raise
        except Exception as error:  # noqa: BLE001 - the convention knows no other way to fail
            unknown(error)


def unknown(error: Exception) -> NoReturn:
    """Print that the state could not be determined, and why; exit with 3."""
    if isinstance(error, LumctlError):
        said = error.message
    else:
        # Errors of the command line print themselves by ``format_message``; anything else is named by its kind.
        told = getattr(error, "format_message", None)
        said = told() if told else f"unexpected {type(error).__name__}: {error}"
    typer.echo(f"LUMCTL UNKNOWN - {plain(said)}")
    raise typer.Exit(EXIT_CODES[State.UNKNOWN]) from error


app = noun_app(NOUNS["check"].help)


@verb(app, cls=MonitoringPlugin)
def check(
    cx: Invocation,
    textfile: Annotated[
        Path | None, typer.Option("--textfile", metavar="PATH", help="Write Prometheus metrics to PATH, atomically.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Read the rack now, even if the daemon has read it recently.")
    ] = False,
    short: Annotated[
        bool,
        typer.Option("--short", help="Print only the most severe problem, by name and rule: one line for a phone."),
    ] = False,
    least_spares: Annotated[
        int,
        typer.Option("--least-spares", metavar="N", min=0, help="Warn if fewer than N spares of a class are free."),
    ] = LEAST_SPARES,
    from_capture: Annotated[
        Path | None,
        typer.Option("--from-capture", metavar="DIR", help="Judge the saved outputs of hosts in DIR; contact no host."),
    ] = None,
) -> None:
    """Judge all components and print one line, for cron and monitoring.

    Acknowledged findings and components in maintenance do not count (see ``lumctl health``). Findings with one cause
    are reported as one incident. If ``lumctl watch`` runs, its newest observation is judged, and no host is read again.

    With ``--from-capture`` earlier outputs of hosts are judged, as of the time of their capture: the manifest's, or the
    newest in the kernel log, or nvidia-smi's own. DIR holds a folder for each host, as ``lumctl fleet capture`` writes
    them; DIR/HOST may also be written by hand, with the files nvidia-smi.xml (nvidia-smi -q -x),
    nvlink.txt (nvidia-smi nvlink -s), kernel.log or dmesg.log (dmesg in any form), net.tsv and infiniband.tsv (path
    and value of files in /sys/class), ethtool-IFACE.txt (ethtool -m), lldp.json (lldpctl -f json), or
    nvidia-smi-session.txt (a transcript of these); dcgm.prom, node.prom, amd.prom and gpud.json are pages of exporters.
    A missing file is not judged. Files directly in DIR belong to one host, which is named like DIR.

    Hosts of the inventory are judged by it. Other hosts need no inventory: their accelerators are called HOST-gpu0 by
    minor number, by position in nvidia-smi's list if it prints none, and HOST-gpu-0000:9b:00.0 if only the kernel log
    names them. Their links are called HOST-eth2 or HOST-mlx5_0; a link that was never up is disabled.

    A job that was stopped for a swap within a day and does not run again yet is a warning.

    If fewer than --least-spares spares of a rack and class are free, and not all that it has, that is a warning; with 0
    it never is.

    Exit code: 0 OK, 1 WARNING (degraded), 2 CRITICAL (failed), 3 UNKNOWN (not read, or any error).
    """
    if short and cx.out.structured:
        raise UsageError(f"--short prints a line for people, -o {cx.out.format} prints data: choose one of them")
    observation = observed(cx, fresh=fresh) if from_capture is None else captured(cx, from_capture)
    if textfile is not None:
        from lumctl.daemon.metrics.collectors import metrics_text

        write_atomically(textfile, metrics_text(observation))
    # A capture holds what was asked for, not the whole rack: it does not say how many spares there are.
    low = spares_low(observation, least_spares) if from_capture is None else {}
    stopped = not_resumed(cx, observation) if from_capture is None else {}
    warnings = (*stopped.values(), *low)
    state = worst((overall(observation), *([State.DEGRADED] if warnings else [])))
    if cx.out.structured:
        more = {"spares_low": list(low.values()), "stopped_jobs": list(stopped)}
        cx.out.document("check", {**check_document(observation, state), **more})
    elif short:
        cx.out.text(short_line(observation, state, warnings))
    else:
        cx.out.text(f"{line(observation, state, warnings)} | {performance_data(observation)}")
    if from_capture is None and (slip := forgotten_target(cx, observation.report)):
        cx.out.narrate(slip)
    raise typer.Exit(EXIT_CODES[state])


def observed(cx: Invocation, *, fresh: bool) -> "Observation":
    """The daemon's newest observation; if there is none, a new one, which is stored for the next command."""
    from lumctl.daemon.client import observation_of

    seen = None if fresh else observation_of(cx.inventory, cx.target)
    if seen is not None:
        cx.out.detail(f"read by the daemon {max(time.time() - seen.at, 0):.1f} s ago")
        return seen
    cx.out.detail("read directly" if fresh else "read directly: no daemon has read it recently")
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        return context.observe(remember=True)


def captured(cx: Invocation, folder: Path) -> "Observation":
    """Judge a capture by the inventory if it was given or contains a host of the capture; else by the files alone.

    Raises:
        UsageError: the folder or a given inventory cannot be read.
    """
    from lumctl.context.capture import observe_capture, remarks

    inventory = _inventory(cx)
    observation = observe_capture(folder, inventory)
    for remark in remarks(folder, inventory):
        cx.out.narrate(remark)
    return observation


def _inventory(cx: Invocation) -> "Inventory | None":
    """The inventory; ``None`` if ``-i`` was not given and no valid inventory is found."""
    if cx.inventory_path is not None:
        return cx.inventory
    try:
        return cx.inventory
    except LumctlError as error:
        cx.out.detail(f"judged without an inventory: {error.message}")
        return None


def spares_low(observation: "Observation", least: int) -> dict[str, dict[str, Any]]:
    """The pools in which fewer spares are left than they should be: each in words, and as data."""
    from lumctl.spares.fitness import spares_by_pool

    low = {key: pool for key, pool in spares_by_pool(observation).items() if pool.is_low(least)}
    return {
        pool.words(name): {"rack": rack, "class": name, "free": len(pool.free), "spares": len(pool.spares)}
        for (rack, name), pool in low.items()
    }


def not_resumed(cx: Invocation, observation: "Observation") -> dict[str, str]:
    """The jobs that were stopped for a swap and do not run again yet, each in words; none if a store does not tell."""
    ranked = (observation.gpus.get(name) for name in observation.places())
    if not any(reading.is_idle for reading in ranked if reading is not None):
        return {}  # the stores are not read: that takes as long as all else beside a daemon
    from lumctl.context import Context
    from lumctl.jobs.stopped_jobs import stopped_jobs

    with suppress(LumctlError), Context(cx.inventory, cx.target) as context:
        return {each.job: each.words for each in stopped_jobs(context, observation)}
    return {}


def overall(observation: "Observation") -> State:
    """The worst counted state of all components; at least a warning if a run waits for an operator."""
    from lumctl.health.observation import counted_states

    left_open = (State.DEGRADED,) if observation.unfinished else ()
    counted = counted_states(observation)
    return worst((*left_open, *(state for group in counted.values() for state in group.values())))


def performance_data(observation: "Observation") -> str:
    """Counts for graphs, as ``label=value;warn;crit;min;max``."""
    from lumctl.cli.views import summary

    counts = [
        f"{name}_{state}={by_state[state]};;;0;{sum(by_state.values())}"
        for name, by_state in summary(observation).items()
        for state in (State.OK, State.FAILED)
    ]
    return " ".join([*counts, f"collection={observation.snapshot.seconds:.3f}s;;;0"])


def check_document(observation: "Observation", state: State) -> dict[str, Any]:
    """The verdict as data: every component with its state and findings."""
    from lumctl.cli.views import finding_document, incident_document, window_document
    from lumctl.health.observation import counted_states

    counted = counted_states(observation)
    return {
        "target": str(observation.target),
        "racks": list(observation.inventory.racks),
        "state": state.value,
        "incidents": [incident_document(incident) for incident in observation.report.incidents],
        "maintenance": [window_document(window, observation.at) for window in observation.windows],
        "components": [
            {
                "id": health.id,
                "kind": name.removesuffix("s"),
                "state": health.state.value,
                "counts_as": counted[name][health.id].value,
                "maintenance": health.maintenance,
                "findings": [finding_document(finding) for finding in health.findings],
            }
            for name, group in observation.report.groups().items()
            for health in group.values()
        ],
    }


def write_atomically(path: Path, text: str) -> None:
    """Write a file atomically: a reader sees all of it or nothing.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        write_whole(path, text, mode=0o644)  # the collector that reads it runs as another user
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
