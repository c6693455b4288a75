"""Receivers that policies name, as the inventory has them: where they are is looked up anew at each attempt."""

from collections.abc import Callable

from lumctl.daemon.command import require_program, run
from lumctl.daemon.letter import Letter
from lumctl.daemon.receivers import Named
from lumctl.daemon.settings import webhook_in
from lumctl.daemon.webhook import DeliveryError, post
from lumctl.errors import UsageError
from lumctl.inventory.model import Inventory
from lumctl.inventory.policies import Receiver


def named_by(current: Callable[[], Inventory]) -> Callable[[str], Named | None]:
    """Finds a receiver by its name in the inventory that is in force; ``None`` if there is none."""

    def find(name: str) -> Named | None:
        found = current().receivers.get(name)
        if found is None:
            return None

        def deliver(letter: Letter) -> None:
            # By now the inventory may have been read again.
            hand_over(current().receivers.get(name, found), letter)

        return Named(deliver, found.give_up_after_s)

    return find


def hand_over(receiver: Receiver, letter: Letter) -> None:
    """Deliver one letter.

    Raises:
        DeliveryError: it was not taken, or where it should go cannot be read now.
    """
    if receiver.command:
        run(receiver.command, letter, timeout_s=receiver.timeout_s)
        return
    try:
        webhook = webhook_in(receiver.webhook_file, receiver.token_file)
    except UsageError as error:
        raise DeliveryError(error.message, again=True) from None
    post(webhook, letter.body, timeout_s=receiver.timeout_s)


def require_ready(inventory: Inventory) -> None:
    """Refuse receivers that nothing could be handed to: an escalation is no time to find that out.

    Raises:
        UsageError: a file cannot be read, holds no URL, or a program is not there.
    """
    for receiver in inventory.receivers.values():
        try:
            if receiver.command:
                require_program(receiver.command[0])
            else:
                webhook_in(receiver.webhook_file, receiver.token_file)
        except UsageError as error:
            raise UsageError(f"receiver {receiver.name}: {error.message}", hint=error.hint) from None
