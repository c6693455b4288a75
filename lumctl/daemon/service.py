"""The daemon and its parts, started and ended together; and the socket that serves its newest observation."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lumctl.context import Context, Observation
from lumctl.daemon.autopilot.pilot import Pilot
from lumctl.daemon.autopilot.policy import require_sound
from lumctl.daemon.client import LOCK, ORDER_SCHEMA, SCHEMA, daemon_folder, socket_path
from lumctl.daemon.history import LatestObservation, RackStores, ReadingHistory, TransitionQueue
from lumctl.daemon.loop import Daemon, Sinks
from lumctl.daemon.metrics.exporter import AutopilotMetrics, MetricsServer, SelfMetrics, SpareMetrics
from lumctl.daemon.notifications.http_receivers import Alertmanager, Webhook, post
from lumctl.daemon.notifications.ledger import FILE, NotificationFile, NotificationLedger
from lumctl.daemon.notifications.message import Notification
from lumctl.daemon.notifications.receivers import Deliver, Receivers, receiver_lookup, require_reachable, run
from lumctl.daemon.process import ErrorLog, exclusive_lock
from lumctl.daemon.spare_watcher import SpareWatcher
from lumctl.errors import UsageError
from lumctl.inventory.model import Inventory
from lumctl.sockets import LineServer, Peer
from lumctl.store import open_store
from lumctl.swap.suggestions import obstacle_words


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    """The options of ``lumctl watch``. ``settle_s`` 0: notify at once; ``remind_after_s`` 0: never remind."""

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
    """A daemon that is ready to run. Its metrics and its socket are served within the block.

    Raises:
        RefusedError: another daemon watches this inventory or uses one of its stores; the message names it.
        UsageError: a socket, a port or a store cannot be opened.
        InventoryError: a policy names an unknown rule.
    """
    with ExitStack() as stack:
        stack.enter_context(
            exclusive_lock(daemon_folder(inventory, target) / LOCK, f"{inventory.path} on target {target}")
        )
        stores = stack.enter_context(RackStores(inventory, target))
        for rack in inventory.racks:
            _claim_store(stack, stores.files(rack), rack, say)
        errors = ErrorLog(say)
        # One file for all racks, beside the first one's store.
        notes = NotificationFile(stores.files(next(iter(inventory.racks))) / FILE)
        ledger = NotificationLedger(notes, settle_s=settings.settle_s, remind_after_s=settings.remind_after_s)
        newest = LatestObservation()
        require_sound(inventory)
        require_reachable(inventory)

        def current() -> Inventory:
            return newest.look.inventory if newest.look is not None else inventory

        managers = [Alertmanager(each, lambda: ledger.still_open(target), errors) for each in settings.alertmanagers]
        receivers = _receivers(settings, target, ledger, notes, errors, current, managers=managers)
        # Closed after the pilot, which still reports how its run ended.
        stack.callback(receivers.close)
        for manager in managers:
            manager.start()
            stack.callback(manager.close)
        outbox = receivers if receivers.usual else None
        history = TransitionQueue(stores.write)
        pilot = Pilot(
            lambda current: Context(current, target),
            lambda rack: open_store(inventory, rack, target),
            say,
            tell=receivers.tell,
            errors=errors,
        )
        stack.callback(pilot.close)

        def obstacle(look: Observation, failed: Sequence[str]) -> str:
            with Context(look.inventory, target) as context:
                return obstacle_words(context, look, failed)

        spares = SpareWatcher(lambda rack: open_store(current(), rack, target), say, receivers.tell, obstacle)
        stack.callback(spares.close)
        counted = receivers if receivers.usual or inventory.receivers else None
        self_metrics = SelfMetrics(newest, settings.interval_s, errors, history, counted)
        self_metrics.registry.register(AutopilotMetrics(pilot))
        self_metrics.registry.register(SpareMetrics(spares))
        if settings.listen is not None:
            exporter = stack.enter_context(MetricsServer(settings.listen, self_metrics))
            say(f"metrics: {exporter.url}")
        readings = stack.enter_context(ReadingHistory(lambda rack: open_store(current(), rack, target), errors))
        stack.enter_context(observation_server(socket_path(inventory, target), newest, pilot))
        daemon = Daemon(
            inventory,
            lambda current: Context(current, target),
            Sinks(newest, history, notes, ledger, outbox, self_metrics, errors, pilot, readings, spares),
            say,
            interval_s=settings.interval_s,
            known=stores.last_states(),
        )
        yield daemon


def _claim_store(stack: ExitStack, files: Path, rack: str, say: Callable[[str], None]) -> None:
    """Lock a store: only one daemon may use it, even with another copy of the inventory or as another user."""
    try:
        stack.enter_context(exclusive_lock(files / LOCK, f"rack {rack}"))
    except UsageError as error:  # even with a full or read-only disk, the rack must be watched
        say(f"store: {error.message}; another daemon could use it too")


def _receivers(
    settings: DaemonSettings,
    target: str,
    ledger: NotificationLedger,
    notes: NotificationFile,
    errors: ErrorLog,
    current: Callable[[], Inventory],
    *,
    managers: Iterable[Alertmanager],
) -> Receivers:
    deliveries: dict[str, Deliver] = {manager.place: manager.deliver for manager in managers}
    webhook, command = settings.webhook, settings.command
    if webhook is not None:
        deliveries["notifications"] = lambda message: post(webhook, message.body)
    if command is not None:
        deliveries["command"] = lambda message: run(command, message)

    def ended(notification: Notification, taken: bool) -> None:
        if not taken:
            ledger.undelivered(notification)
            return
        ledger.delivered(notification)
        with suppress(OSError):  # the next beat tries again and reports the error
            notes.save()

    return Receivers(deliveries, ended, errors, target=target, named=receiver_lookup(current))


def observation_server(path: Path, newest: LatestObservation, pilot: Pilot | None = None) -> LineServer:
    """Serve the newest observation until the server is closed, and pass orders to the autopilot.

    The answer to a request for the observation is a line with its length in bytes, followed by these bytes.

    Raises:
        UsageError: the socket cannot be made.
    """

    def answer(request: Mapping[str, Any], peer: Peer) -> tuple[dict[str, Any], bytes]:
        del peer
        if request["schema"] == ORDER_SCHEMA:
            return obey(request, pilot), b""
        look, age_s = newest.look, newest.age_s()
        fits = (
            look is not None
            and age_s is not None
            and request["schema"] == SCHEMA
            and request["digest"] == look.inventory.digest
            and age_s <= float(request["max_age_s"])
        )
        body = newest.encoded(look) if look is not None and fits else b""
        return {"schema": SCHEMA, "pid": os.getpid(), "age_s": age_s, "length": len(body)}, body

    hint = "set $XDG_RUNTIME_DIR to a folder of yours with a short name"
    return LineServer(path, answer, name="lumctl-observations", hint=hint)


def obey(order: Mapping[str, Any], pilot: Pilot | None) -> dict[str, Any]:
    """Execute an order to the autopilot; return its state afterwards."""
    if pilot is not None:
        if order.get("do") == "stop":
            pilot.stop(f"by {order.get('who', 'somebody')}")
        elif order.get("do") == "start":
            pilot.start()
    return {
        "schema": ORDER_SCHEMA,
        "pid": os.getpid(),
        "stopped": pilot.stopped if pilot is not None else "it has no autopilot",
        "busy": bool(pilot is not None and pilot.busy),
    }
