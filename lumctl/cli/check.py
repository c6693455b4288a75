"""``lumctl check``: one line and an exit code, by the convention of monitoring plug-ins.

0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN; whatever goes wrong, a wrong option included, is UNKNOWN and never CRITICAL.
"""

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from lumctl.cli.check_line import EXIT_CODES, line, plain, short_line
from lumctl.cli.from_capture import captured
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.verbs import PlainCommand, noun_app, verb
from lumctl.errors import LumctlError, UsageError
from lumctl.health.states import State, worst

if TYPE_CHECKING:
    from typer import _click as click

    from lumctl.context import Observation


class MonitoringPlugin(PlainCommand):
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
    typer.echo(f"LUMCTL UNKNOWN - {plain(said)}")
    raise typer.Exit(EXIT_CODES[State.UNKNOWN]) from error


app = noun_app(NOUNS["check"].help)


@verb(app, cls=MonitoringPlugin)
def check(
    cx: Invocation,
    textfile: Annotated[
        Path | None, typer.Option("--textfile", metavar="PATH", help="Write Prometheus metrics to PATH, atomically.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Read now, even where the daemon has just looked.")] = False,
    short: Annotated[
        bool, typer.Option("--short", help="Say the gravest thing alone, by name and rule: a line for a phone.")
    ] = False,
    from_capture: Annotated[
        Path | None,
        typer.Option("--from-capture", metavar="DIR", help="Judge the saved outputs of hosts in DIR; contact nobody."),
    ] = None,
) -> None:
    """Judge everything and say it in one line, for cron and monitoring.

    What is acknowledged or in maintenance does not count (see ``lumctl health``); of several findings with one cause
    the incident is named. Where ``lumctl watch`` runs, its newest look is judged, and nothing is read anew.

    With ``--from-capture`` the outputs that hosts printed earlier are judged, each as of the time of its capture: its
    manifest's, else the newest in its kernel log, else nvidia-smi's own. DIR holds a folder for each host, as
    ``lumctl fleet capture`` writes them; DIR/HOST may also be made by hand, from nvidia-smi.xml (nvidia-smi -q -x),
    nvlink.txt (nvidia-smi nvlink -s), kernel.log or dmesg.log (dmesg in any form), net.tsv and infiniband.tsv (path
    and value of files in /sys/class), ethtool-IFACE.txt (ethtool -m), lldp.json (lldpctl -f json), or
    nvidia-smi-session.txt (a transcript of these); dcgm.prom, node.prom, amd.prom and gpud.json are pages of exporters.
    A file that is not there is not judged. Files directly in DIR are one host's, which is named like DIR.

    Hosts that the inventory names are judged by it. For others no inventory is needed: accelerators are called
    HOST-gpu0 by minor number, or by place in nvidia-smi's list where it prints none, and HOST-gpu-0000:9b:00.0 where
    only the kernel log names them; links are called HOST-eth2 or HOST-mlx5_0, and one that was never up is disabled.

    Exit code: 0 OK, 1 WARNING (degraded), 2 CRITICAL (failed), 3 UNKNOWN (not read, or any error).
    """
    if short and cx.out.structured:
        raise UsageError(f"--short is a line for people, -o {cx.out.format} is data: ask for one of them")
    observation = observed(cx, fresh=fresh) if from_capture is None else captured(cx, from_capture)
    if textfile is not None:
        from lumctl.daemon.metrics.collectors import metrics_text

        write_atomically(textfile, metrics_text(observation))
    state = overall(observation)
    if cx.out.structured:
        cx.out.document("check", check_document(observation, state))
    elif short:
        cx.out.text(short_line(observation, state))
    else:
        cx.out.text(f"{line(observation, state)} | {performance_data(observation)}")
    raise typer.Exit(EXIT_CODES[state])


def observed(cx: Invocation, *, fresh: bool) -> "Observation":
    """The daemon's newest look, or one of our own, which is remembered for the next one."""
    from lumctl.daemon.client import observation_of

    seen = None if fresh else observation_of(cx.inventory, cx.target)
    if seen is not None:
        cx.out.detail(f"as the daemon (lumctl watch) saw it {max(time.time() - seen.at, 0):.1f} s ago")
        return seen
    cx.out.detail("read directly" if fresh else "read directly: no daemon (lumctl watch) has just looked")
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        return context.observe(remember=True)


def overall(observation: "Observation") -> State:
    """The worst state that counts of any component; a run that waits for a hand is a warning at least."""
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
