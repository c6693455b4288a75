"""``lumctl watch``: run the daemon in the foreground, for example under systemd."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.live import interval_option
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import UsageError
from lumctl.time_text import moment_text

if TYPE_CHECKING:
    from lumctl.daemon.loop import Daemon

app = noun_app(NOUNS["watch"].help)


@verb(app)
def watch(
    cx: Invocation,
    interval: Annotated[float, interval_option("Seconds between two observations.")] = 1.0,
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="The address to serve metrics and /healthz on; none: do not serve them.",
        ),
    ] = "127.0.0.1:9469",
    webhook_file: Annotated[
        Path | None,
        typer.Option("--webhook-file", metavar="FILE", help="A file that contains the URL to post notifications to."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="A file that contains its bearer token.")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option("--command", metavar="'PROGRAM ARG...'", help="A program to run for each notification."),
    ] = None,
    alertmanager: Annotated[
        list[str] | None,
        typer.Option(
            "--alertmanager", metavar="URL", help="An Alertmanager that receives all open incidents; repeatable."
        ),
    ] = None,
    alertmanager_token_file: Annotated[
        Path | None,
        typer.Option("--alertmanager-token-file", metavar="FILE", help="A file that contains their bearer token."),
    ] = None,
    settle: Annotated[
        float,
        typer.Option(
            "--settle", metavar="SECONDS", min=0, max=86400, help="How long a fault must last before it is notified."
        ),
    ] = 5.0,
    remind: Annotated[
        float,
        typer.Option(
            "--remind",
            metavar="HOURS",
            min=0,
            max=8760,
            help="Repeat notifications of open incidents at this interval; 0: never.",
        ),
    ] = 0.0,
    print_rules: Annotated[
        bool, typer.Option("--print-rules", help="Print alert rules for Prometheus, and do nothing else.")
    ] = False,
    print_dashboard: Annotated[
        bool, typer.Option("--print-dashboard", help="Print a dashboard for Grafana, and do nothing else.")
    ] = False,
) -> None:
    """Run the daemon in the foreground: read everything at an interval, record history, and notify.

    Every change of a component's state is printed on standard error (equal changes in one line) and added to the rack's
    history. Metrics for Prometheus are served at http://HOST:PORT/metrics; /healthz answers 503 if no observation
    succeeded for five intervals, and for at least ten seconds. While the daemon runs, ``check`` and ``top`` of the same
    user show its newest observation. The rack's store contains the readings of accelerators and transponders of the
    last seven days: minimum, mean and maximum of each minute. ``top`` plots them.

    With ``--webhook-file`` or $LUMCTL_WEBHOOK_URL it posts a JSON document (schema ``lumctl/notification/v1``) when
    an incident opens, gets worse, or ends: one for each incident, however many components it affects. It omits
    acknowledged findings and components in maintenance. With ``--command`` a program receives the same document on
    its standard input. Delivery to a receiver that does not answer is retried for an hour, and delays no other
    receiver. With ``--alertmanager`` each open incident is an alert in Alertmanager until it ends or is acknowledged;
    all alerts are posted again each minute. If Prometheus scrapes the daemon, the rules of ``--print-rules`` do the
    same: use one of the two. An escalation by a policy also goes to the receiver that the policy names: see
    lumctl-inventory(5).

    SIGTERM and SIGINT end the daemon (exit code 0). SIGHUP makes it read the inventory again; it keeps the old one if
    the new one has errors. A second daemon of the same inventory and target is refused (exit code 5).
    """
    if print_rules and print_dashboard:
        raise UsageError(
            "--print-rules and --print-dashboard print two different files", hint="use one of them at a time"
        )
    if print_rules:
        from lumctl.daemon.metrics.alerts_and_dashboard import alert_rules

        cx.out.text(alert_rules())
        return
    if print_dashboard:
        from lumctl.daemon.metrics.alerts_and_dashboard import dashboard

        cx.out.text(dashboard())
        return
    if cx.out.format is not OutputFormat.TABLE:
        raise UsageError("the daemon prints no data", hint=f"lumctl check -o {cx.out.format}")
    from lumctl.daemon.metrics.exporter import parse_listen
    from lumctl.daemon.notifications.http_receivers import alertmanager_at, webhook_from
    from lumctl.daemon.notifications.receivers import parse_command
    from lumctl.daemon.service import DaemonSettings, service

    settings = DaemonSettings(
        interval_s=interval,
        listen=parse_listen(listen),
        webhook=webhook_from(webhook_file, token_file),
        command=parse_command(command) if command is not None else None,
        alertmanagers=tuple(alertmanager_at(url, alertmanager_token_file) for url in alertmanager or ()),
        settle_s=settle,
        remind_after_s=remind * 3600,
    )
    say = sayer(cx)
    with service(cx.inventory, cx.target, settings, say) as daemon, _ordered_by_signals(daemon):
        say(f"observing {cx.inventory.path} on target {cx.target} every {interval:g} s (pid {os.getpid()})")
        daemon.run()
    say("ended")


def sayer(cx: Invocation) -> Callable[[str], None]:
    """A function that prints a line, with the time unless journald adds it."""
    # systemd sets this variable when the output goes to the journal, which adds the time itself.
    stamped = "JOURNAL_STREAM" not in os.environ

    def say(text: str) -> None:
        stamp = f"{moment_text(time.time())} " if stamped else ""
        with suppress(OSError, ValueError):  # The reader is gone, or the disk of its file is full.
            cx.out.narrate(f"{stamp}{text}")

    return say


@contextmanager
def _ordered_by_signals(daemon: "Daemon") -> Iterator[None]:
    """Within the block, signals become orders, which the daemon handles between two observations."""
    from lumctl.daemon.loop import DaemonOrder

    orders = {signal.SIGTERM: DaemonOrder.STOP, signal.SIGINT: DaemonOrder.STOP, signal.SIGHUP: DaemonOrder.RELOAD}
    before = {
        # The default binds the order of this turn; a closure would see that of the last one.
        number: signal.signal(number, lambda *_, order=order: daemon.orders.put(order))
        for number, order in orders.items()
    }
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
