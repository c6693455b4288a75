"""The daemon with all that belongs to it, put together and taken apart."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from lumctl.daemon.alertmanager import Alertmanager
from lumctl.daemon.answering import Answering
from lumctl.daemon.claim import claimed
from lumctl.daemon.command import run
from lumctl.daemon.daemon import Daemon, Sinks
from lumctl.daemon.escalating import named_by, require_ready
from lumctl.daemon.exporter import Exporter
from lumctl.daemon.history import History
from lumctl.daemon.ledger import Ledger
from lumctl.daemon.newest import Newest
from lumctl.daemon.notes import FILE, Notes
from lumctl.daemon.notification import Notification
from lumctl.daemon.piloting import Piloting, pilot_of
from lumctl.daemon.place import LOCK, meeting_folder, socket_path
from lumctl.daemon.readings import Readings
from lumctl.daemon.receivers import Deliver, Receivers
from lumctl.daemon.settings import Webhook
from lumctl.daemon.stores import Stores
from lumctl.daemon.supervisor import tell
from lumctl.daemon.troubles import Troubles
from lumctl.daemon.vitals import Vitals
from lumctl.daemon.webhook import post
from lumctl.errors import UsageError
from lumctl.inventory.model import Inventory
from lumctl.site import Site
from lumctl.store import open_store


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator decides about a daemon. ``settle_s`` 0: tell at once; ``remind_after_s`` 0: tell once."""

    interval_s: float = 1.0
    listen: tuple[str, int] | None = None
    webhook: Webhook | None = field(default=None, repr=False)
    command: tuple[str, ...] | None = None
    alertmanagers: tuple[Webhook, ...] = field(default=(), repr=False)
    settle_s: float = 0.0
    remind_after_s: float = 0.0


@contextmanager
def service(inventory: Inventory, target: str, settings: Settings, say: Callable[[str], None]) -> Iterator[Daemon]:
    """A daemon that is ready to run; it serves metrics and answers those who ask from now on.

    Raises:
        RefusedError: another daemon watches this inventory or uses one of its stores; it is named.
        UsageError: a socket, a port or a store cannot be had.
    """
    with ExitStack() as stack:
        stack.callback(tell, "STOPPING=1")
        stack.enter_context(claimed(meeting_folder(inventory, target) / LOCK, f"{inventory.path} on target {target}"))
        stores = stack.enter_context(Stores(inventory, target))
        for rack in inventory.racks:
            _claim_store(stack, stores.files(rack), rack, say)
        troubles = Troubles(say)
        notes = Notes(stores.files(next(iter(inventory.racks))) / FILE)
        ledger = Ledger(notes, settle_s=settings.settle_s, remind_after_s=settings.remind_after_s)
        newest = Newest()
        require_ready(inventory)

        def current() -> Inventory:
            return newest.look.inventory if newest.look is not None else inventory

        managers = [Alertmanager(each, lambda: ledger.still_open(target), troubles) for each in settings.alertmanagers]
        receivers = _receivers(settings, target, ledger, notes, troubles, current, managers=managers)
        stack.callback(receivers.close)
        for manager in managers:
            manager.start()
            stack.callback(manager.close)
        outbox = receivers if receivers.usual else None
        history = History(stores.write)
        pilot = pilot_of(inventory, target, troubles, say, receivers.tell)
        stack.callback(pilot.close)
        counted = receivers if receivers.usual or inventory.receivers else None
        vitals = Vitals(newest, settings.interval_s, troubles, history, counted)
        vitals.registry.register(Piloting(pilot))
        if settings.listen is not None:
            exporter = stack.enter_context(Exporter(settings.listen, vitals))
            say(f"metrics: {exporter.url}")
        readings = stack.enter_context(Readings(lambda rack: open_store(current(), rack, target), troubles))
        stack.enter_context(Answering(socket_path(inventory, target), newest, pilot))
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
        stack.enter_context(claimed(files / LOCK, f"rack {rack}"))
    except UsageError as error:  # a disk that is full or read-only: it is watched all the same
        say(f"store: {error.message}; another daemon could use it too")


def _receivers(
    settings: Settings,
    target: str,
    ledger: Ledger,
    notes: Notes,
    troubles: Troubles,
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

    return Receivers(deliveries, told, troubles, target=target, named=named_by(current))
