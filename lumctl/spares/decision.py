"""Asks the sharing policy that an inventory names; if a plug-in's policy fails, the default decides.

A policy of a plug-in is a function that a package offers by an entry point of the group ``lumctl.sharing``.
"""

from dataclasses import dataclass
from typing import Any, cast

from lumctl.containment import LateError, MisbehavedError, contained
from lumctl.errors import LumctlError, UsageError
from lumctl.inventory.model import Inventory
from lumctl.inventory.problems import Mark, Problems
from lumctl.offers import SHARING, imported, offered, the_offer
from lumctl.spares.policies import DEFAULT, POLICIES
from lumctl.spares.sharing import InvalidAnswer, SharingPolicy, SharingQuestion, check_answer

WHAT = "sharing policy"
ANSWERS_WITHIN_S = 0.1


@dataclass(frozen=True, slots=True)
class SpareDecision:
    """The spares of each demand that is served now, and the policy that decided.

    ``fault`` is why that is not the policy of the inventory; ``None`` if it is.
    """

    given: dict[str, tuple[str, ...]]
    policy: str
    fault: str | None = None


def policy_names() -> tuple[str, ...]:
    """Every policy that an inventory can name."""
    return (*POLICIES, *(offer.name for offer in offered(SHARING) if offer.name not in POLICIES))


def require_policy(inventory: Inventory) -> None:
    """Refuse a sharing policy that is not installed, or does not load.

    Raises:
        InventoryError: no policy has the name in the inventory. UsageError: its package does not load.
    """
    sharing, names = inventory.sharing, policy_names()
    if sharing.policy not in names:
        problems = Problems(inventory.path)
        problems.unknown(sharing.mark or Mark(1, 1), WHAT, sharing.policy, names, listed=True)
        raise problems.error()
    load(sharing.policy)


_late: dict[str, str] = {}
"""Policies that answered too late, each with the reason: they are not asked again by this process."""


def decide(name: str, asked: SharingQuestion) -> SpareDecision:
    """The answer of the policy of that name.

    A policy of a plug-in that raises an error, answers nonsense or does not answer within
    :data:`ANSWERS_WITHIN_S` seconds is not followed: :data:`~lumctl.spares.policies.DEFAULT` decides.
    """
    if name in POLICIES:
        return SpareDecision(_own(name, asked), name)
    fault = _late.get(name)
    if fault is None:
        try:
            return SpareDecision(_asked_within(name, asked), name)
        except LateError as error:
            fault = _late[name] = f"{error.message}; it is not asked again"
        except MisbehavedError as error:
            fault = error.message
        except LumctlError as error:  # not installed, or raised by the plug-in
            fault = f"{WHAT} {name!r}: {error.message}"
    return SpareDecision(_own(DEFAULT, asked), DEFAULT, fault)


def _asked_within(name: str, asked: SharingQuestion) -> dict[str, tuple[str, ...]]:
    policy, offer = load(name), the_offer(SHARING, name, WHAT)
    # Checked in the plug-in's own time: its answer may be a mapping of its own, with code that runs as it is read.
    answer = contained(offer.culprit(WHAT), "its answer", lambda: check_answer(asked, policy(asked)), ANSWERS_WITHIN_S)
    if isinstance(answer, InvalidAnswer):
        raise MisbehavedError(offer.culprit(WHAT), "its answer", f"cannot be followed: {answer.text}")
    return answer


def _own(name: str, asked: SharingQuestion) -> dict[str, tuple[str, ...]]:
    """The answer of a policy of lumctl, which tests check."""
    return {demand: tuple(spares) for demand, spares in POLICIES[name](asked).items()}


def load(name: str) -> SharingPolicy:
    """The function of a policy.

    Raises:
        UsageError: no package offers it, or it does not load.
    """
    if name in POLICIES:
        return POLICIES[name]
    found: Any = imported(SHARING, the_offer(SHARING, name, WHAT), WHAT)
    if not callable(found):
        raise UsageError(f"{WHAT} {name!r} is not a function", hint="see: lumctl plugin list")
    return cast("SharingPolicy", found)
