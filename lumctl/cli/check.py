"""``lumctl check``: one line and an exit code, by the convention of monitoring plug-ins.

0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN; whatever goes wrong, a wrong option included, is UNKNOWN and never CRITICAL.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import LumctlError, UsageError
from lumctl.health.states import SEVERITY, Finding, State, worst

if TYPE_CHECKING:
    from typer import _click as click

    from lumctl.site import Observation

EXIT_CODES = {State.OK: 0, State.DISABLED: 0, State.DEGRADED: 1, State.FAILED: 2, State.UNKNOWN: 3}
WORDS = {0: "OK", 1: "WARNING", 2: "CRITICAL", 3: "UNKNOWN"}
NAMED_AT_MOST = 3
"""A line goes to pagers and chat rooms: it names the worst, ``status`` names all."""


class MonitoringPlugin(TyperCommand):
    """A command whose every error, from parsing its options on, becomes one line and exit code 3."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: "click.Context | None" = None, **extra: Any
    ) -> "click.Context":
        """Parse the command line."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except typer.Exit:
            raise
        except Exception as error:  # noqa: BLE001 - the convention knows no other way to fail
            unknown(error)

    def invoke(self, ctx: "click.Context") -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except typer.Exit:
            raise
        except Exception as error:  # noqa: BLE001 - the convention knows no other way to fail
            unknown(error)


def unknown(error: Exception) -> NoReturn:
    """Say that nothing could be found out, and why."""
    if isinstance(error, LumctlError):
        said = error.message
    else:
        # Errors of the command line print themselves by ``format_message``; anything else is named by its kind.
        told = getattr(error, "format_message", None)
        said = told() if told else f"unexpected {type(error).__name__}: {error}"
    typer.echo(f"LUMCTL UNKNOWN - {_plain(said)}")
    raise typer.Exit(EXIT_CODES[State.UNKNOWN]) from error


app = noun_app(NOUNS["check"].help)


@verb(app, cls=MonitoringPlugin)
def check(
    cx: Invocation,
    textfile: Annotated[
        Path | None, typer.Option("--textfile", metavar="PATH", help="Write Prometheus metrics to PATH, atomically.")
    ] = None,
) -> None:
    """Judge everything and say it in one line, for cron and monitoring.

    Exit code: 0 OK, 1 WARNING (degraded), 2 CRITICAL (failed), 3 UNKNOWN (not read, or any error).
    """
    from lumctl.health.metrics import prometheus_text
    from lumctl.site import Site

    with Site(cx.inventory, cx.target) as site:
        observation = site.observe()
    if textfile is not None:
        seconds = observation.snapshot.seconds
        write_atomically(textfile, prometheus_text(observation.report, target=cx.target, collection_s=seconds))
    state = overall(observation)
    if cx.out.structured:
        cx.out.document("check", check_document(observation, state))
    else:
        cx.out.text(f"{line(observation, state)} | {performance_data(observation)}")
    raise typer.Exit(EXIT_CODES[state])


def overall(observation: "Observation") -> State:
    """The worst state of any component in service; a run that waits for a hand is a warning at least."""
    groups = observation.report.groups()
    left_open = (State.DEGRADED,) if observation.unfinished else ()
    return worst((*left_open, *(health.state for group in groups.values() for health in group.values())))


def line(observation: "Observation", state: State) -> str:
    """The verdict in one line: what is wrong, worst first, with the findings of the worst."""
    from lumctl.cli.views import summary

    counts = summary(observation)
    told = []
    for bad in reversed(SEVERITY[SEVERITY.index(State.UNKNOWN) :]):
        for name, group in observation.report.groups().items():
            if counts[name][bad]:
                findings = [h.findings[0] for h in group.values() if h.state is bad and h.findings]
                named = _named(findings) if bad is state else ""
                told.append(f"{counts[name][bad]} of {len(group)} {name} {bad}{named}")
    told += [f"run {run} is unfinished" for run in observation.unfinished]
    well = ", ".join(f"{counts[name][State.OK]} {name}" for name in ("accelerators", "circuits"))
    racks = ",".join(observation.inventory.racks)
    return f"LUMCTL {WORDS[EXIT_CODES[state]]} - {_plain(racks)}: {_plain('; '.join(told) or f'{well} ok')}"


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
    from lumctl.cli.views import finding_document

    return {
        "target": str(observation.target),
        "racks": list(observation.inventory.racks),
        "state": state.value,
        "components": [
            {
                "id": health.id,
                "kind": name.removesuffix("s"),
                "state": health.state.value,
                "findings": [finding_document(finding) for finding in health.findings],
            }
            for name, group in observation.report.groups().items()
            for health in group.values()
        ],
    }


def write_atomically(path: Path, text: str) -> None:
    """Write a file that a reader sees whole or not at all.

    Raises:
        UsageError: it cannot be written there.
    """
    made: str | None = None
    try:
        descriptor, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            # The collector that reads it runs as another user; mkstemp lets in nobody but us.
            os.fchmod(file.fileno(), 0o644)
            file.write(text)
        Path(made).replace(path)
    except OSError as error:
        if made is not None:
            with suppress(OSError):
                Path(made).unlink()
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _named(findings: list[Finding]) -> str:
    named = [f"{finding.component}: {finding.evidence}" for finding in findings[:NAMED_AT_MOST]]
    if len(findings) > NAMED_AT_MOST:
        named.append(f"{len(findings) - NAMED_AT_MOST} more")
    return f" ({', '.join(named)})" if named else ""


def _plain(text: str) -> str:
    """Text for one line: the convention takes ``|`` for the start of the performance data."""
    return " ".join(text.replace("|", "/").split())
