"""The daemon with all that belongs to it, put together and taken apart."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from lumctl.daemon.autopilot.pilot import Notify, Pilot
from lumctl.daemon.autopilot.policy import require_sound
from lumctl.daemon.client import LOCK, daemon_folder, socket_path
from lumctl.daemon.history import RackStores, ReadingHistory, TransitionQueue
from lumctl.daemon.loop import Daemon, Sinks
from lumctl.daemon.metrics.exporter import AutopilotMetrics, MetricsServer, SelfMetrics
from lumctl.daemon.notifications.alertmanager import Alertmanager
from lumctl.daemon.notifications.ledger import FILE, NotificationFile, NotificationLedger
from lumctl.daemon.notifications.message import Notification
from lumctl.daemon.notifications.receivers import Deliver, Receivers, receiver_lookup, require_reachable, run
from lumctl.daemon.notifications.webhook import Webhook, post
from lumctl.daemon.process import ErrorLog, exclusive_lock, notify_systemd
from lumctl.daemon.server import LatestObservation, observation_server
from lumctl.errors import UsageError
from lumctl.inventory.model import Inventory
from lumctl.site import Site
from lumctl.store import open_store


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    """What an operator decides about a daemon. ``settle_s`` 0: tell at once; ``remind_after_s`` 0: tell once."""

    interval_s: float = 1.0
    listen: tuple[str, int] | None = None
    webhook: Webhook | None = field(default=None, repr=False)
    command: tuple[str, ...] | None = None
    alertmanagers: tuple[Webhook, ...] = field(default=(), repr=False)
    settle_s: float = 0.0
    remind_after_s: float = 0.0


@contextmanager
def service(
    inventory: Inventory, target: str, settings: DaemonSettings, say: Callable[[str], None]
) -> Iterator[Daemon]:
    """A daemon that is ready to run; it serves metrics and answers those who ask from now on.

    Raises:
        RefusedError: another daemon watches this inventory or uses one of its stores; it is named.
        UsageError: a socket, a port or a store cannot be had.
    """
    with ExitStack() as stack:
        stack.callback(notify_systemd, "STOPPING=1")
        stack.enter_context(
            exclusive_lock(daemon_folder(inventory, target) / LOCK, f"{inventory.path} on target {target}")
        )
        stores = stack.enter_context(RackStores(inventory, target))
        for rack in inventory.racks:
            _claim_store(stack, stores.files(rack), rack, say)
        troubles = ErrorLog(say)
        notes = NotificationFile(stores.files(next(iter(inventory.racks))) / FILE)
        ledger = NotificationLedger(notes, settle_s=settings.settle_s, remind_after_s=settings.remind_after_s)
        newest = LatestObservation()
        require_reachable(inventory)

        def current() -> Inventory:
            return newest.look.inventory if newest.look is not None else inventory

        managers = [Alertmanager(each, lambda: ledger.still_open(target), troubles) for each in settings.alertmanagers]
        receivers = _receivers(settings, target, ledger, notes, troubles, current, managers=managers)
        stack.callback(receivers.close)
        for manager in managers:
            manager.start()
            stack.callback(manager.close)
        outbox = receivers if receivers.usual else None
        history = TransitionQueue(stores.write)
        pilot = _pilot(inventory, target, troubles, say, receivers.tell)
        stack.callback(pilot.close)
        counted = receivers if receivers.usual or inventory.receivers else None
        vitals = SelfMetrics(newest, settings.interval_s, troubles, history, counted)
        vitals.registry.register(AutopilotMetrics(pilot))
        if settings.listen is not None:
            exporter = stack.enter_context(MetricsServer(settings.listen, vitals))
            say(f"metrics: {exporter.url}")
        readings = stack.enter_context(ReadingHistory(lambda rack: open_store(current(), rack, target), troubles))
        stack.enter_context(observation_server(socket_path(inventory, target), newest, pilot))
        daemon = Daemon(
            inventory,
            lambda current: Site(current, target),
            Sinks(newest, history, notes, ledger, outbox, vitals, troubles, pilot, readings),
            say,
            interval_s=settings.interval_s,
            known=stores.last_states(),
        )
        yield daemon


def _claim_store(stack: ExitStack, files: Path, rack: str, say: Callable[[str], None]) -> None:
    """One daemon for each store, whoever runs it and from whichever copy of the inventory."""
    try:
        stack.enter_context(exclusive_lock(files / LOCK, f"rack {rack}"))
    except UsageError as error:  # a disk that is full or read-only: it is watched all the same
        say(f"store: {error.message}; another daemon could use it too")


def _receivers(
    settings: DaemonSettings,
    target: str,
    ledger: NotificationLedger,
    notes: NotificationFile,
    troubles: ErrorLog,
    current: Callable[[], Inventory],
    *,
    managers: Iterable[Alertmanager],
) -> Receivers:
    deliveries: dict[str, Deliver] = {manager.place: manager.deliver for manager in managers}
    webhook, command = settings.webhook, settings.command
    if webhook is not None:
        deliveries["notifications"] = lambda letter: post(webhook, letter.body)
    if command is not None:
        deliveries["command"] = lambda letter: run(command, letter)

    def told(notification: Notification, taken: bool) -> None:
        if not taken:
            ledger.undelivered(notification)
            return
        ledger.delivered(notification)
        with suppress(OSError):  # the next beat tries again, and tells of it
            notes.save()

    return Receivers(deliveries, told, troubles, target=target, named=receiver_lookup(current))


def _pilot(inventory: Inventory, target: str, troubles: ErrorLog, say: Callable[[str], None], tell: Notify) -> Pilot:
    """The autopilot of an inventory; it does nothing before it sees a look by an inventory with policies.

    Raises:
        InventoryError: a policy names a rule that there is not.
    """
    require_sound(inventory)

    def trouble(place: str, error: Exception | None) -> None:
        if error is None:
            troubles.passed(place)
        else:
            troubles.arose(place, error)

    return Pilot(
        lambda current: Site(current, target),
        lambda rack: open_store(inventory, rack, target),
        say,
        tell=tell,
        trouble=trouble,
    )
