"""The rules of the contract by name: what each says, and what usually breaks it. A failing test names its rule."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, ParamSpec, TypeVar

import pytest

from lumctl.devices.errors import DeviceError
from lumctl.devices.testing.time_limit import NeverEndedError, bounded

P = ParamSpec("P")
T = TypeVar("T")

NOT_TESTED = "not tested: "
"""How the reason of a skipped test begins that shows nothing about the driver."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the contract. ``cause`` is what usually breaks it."""

    text: str
    cause: str


RULES = {
    "declaration": Rule(
        "a driver states api_version, kind, capabilities and on what it was proven",
        "a capability written as text, or an empty `proven`",
    ),
    "opening": Rule(
        "making a driver contacts nothing; the first call does",
        "the connection is opened in __init__",
    ),
    "identity": Rule(
        "identify() gives one printable line, and finds out a device of another size (InconsistentError)",
        "the device's banner is returned as it came, or its size is not compared with the context's",
    ),
    "types": Rule(
        "every answer is of the type that its Protocol states",
        "a value is returned as the device wrote it: text for a number or a state, a list or dict for a dataclass",
    ),
    "units": Rule(
        "powers are in dBm (-inf: no light), temperatures in degrees Celsius, times in epoch seconds, ages in seconds, "
        "frequencies in MHz, electrical power in watts",
        "powers are in dBm; 0.2 looks like mW. 300 for a temperature looks like Kelvin, a huge age like a time",
    ),
    "numbering": Rule(
        "PUCs and ports are numbered from 0 to one less than the inventory's count",
        "the numbers of the front panel, which begin at 1, are passed through",
    ),
    "errors": Rule(
        "a call raises only the errors of lumctl.devices.errors",
        "an error of the socket, of the parser or of the vendor's library is let through",
    ),
    "unreachable": Rule(
        "where nothing was sent, or nothing can be read, the error is DeviceUnreachableError, and no value is made up",
        "the last answer is given again, or a failed connection is reported as refused or unknown",
    ),
    "refused": Rule(
        "what cannot be done is refused whole with DeviceRefusedError, before anything changes",
        "numbers are not checked when a change is staged, or an index error is raised for them",
    ),
    "undeclared": Rule(
        "what is not declared raises UnsupportedError before anything is sent",
        "a method is there and its capability is not declared, or it is the other way round",
    ),
    "deadline": Rule(
        "a call ends within context.timeout_s (or its own entry in slow_calls), however the device behaves",
        "the time limit is set for each byte or each retry, not for the whole call, or not at all",
    ),
    "staging": Rule(
        "stage and compare change nothing on the device, and state what was before",
        "staging writes to the device's candidate without a way back, or to the device itself",
    ),
    "read-afresh": Rule(
        "what can be read is read from the device each time",
        "states are remembered from the last write",
    ),
    "commit": Rule(
        "a commit writes what was staged and nothing else, and returns when the device holds it",
        "commit returns when the device has queued the change, or writes ports that the change does not name",
    ),
    "idempotent": Rule(
        "committing, switching and setting again is harmless",
        "a toggle is sent in place of a state, or an order is given again to a device that is there already",
    ),
    "outcome": Rule(
        "after a lost or spoilt answer a write raises OutcomeUnknownError or reads back: success means that the device "
        "holds it, unreachable and refused that nothing changed",
        "a timeout after sending is reported as unreachable, refused or success",
    ),
    "half-applied": Rule(
        "a change that was taken in part is never reported as refused or unreachable",
        "several requests are sent for one change, and the error of the last one is passed on",
    ),
    "atomic": Rule(
        "a driver that declares ATOMIC leaves all of a change or nothing of it",
        "several requests are sent for one change",
    ),
    "roll-back": Rule(
        "roll_back writes what was before, whole, and refuses where that is not known",
        "the befores of the receipt are not used, or those that are not known are passed over",
    ),
    "confirm": Rule(
        "confirm disarms the device's revert timer, and does nothing where there is none",
        "the request that confirms is not sent, or is sent on another session than the commit",
    ),
    "revert-timer": Rule(
        "a revert timer that was asked for is armed, or UnsupportedError is raised and nothing is sent",
        "revert_after_s is ignored",
    ),
    "foreign": Rule(
        "nothing is taken from anybody: joins that a change does not name stay",
        "the egress port is freed first, whoever holds it",
    ),
    "read-back": Rule(
        "what was set is read back from the device before the call returns",
        "the value that was sent is remembered and returned as a reading",
    ),
    "silence": Rule(
        "a driver prints nothing: standard output belongs to the command",
        "a print() from debugging, or a library that prints",
    ),
    "closing": Rule(
        "close gives everything back, and a second call does nothing",
        "close uses what the first call has set to None",
    ),
}


_ANY_ERROR = ("closing", "opening")
"""Rules that any error breaks."""


class ContractBrokenError(AssertionError):
    """A rule of the contract is broken. The message names it, what was found, and what usually causes it."""

    def __init__(self, rule: str, found: str) -> None:
        self.rule, self.found = rule, found
        told = RULES[rule]
        super().__init__(f"rule {rule!r}: {told.text}\n  found: {found}\n  usual cause: {told.cause}")


def broken(rule: str, found: str) -> NoReturn:
    """Fail by a rule.

    Raises:
        ContractBrokenError: always.
    """
    raise ContractBrokenError(rule, found)


def not_tested(reason: str) -> NoReturn:
    """Skip a test that cannot show anything about this driver; reports count it and say why."""
    pytest.skip(f"{NOT_TESTED}{reason}")


def proves(rule: str, *also: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Mark a test as the proof of a rule, which its failure names; a foreign error of the driver breaks ``errors``.

    One that passes proves ``also`` these; where it breaks one of them, it names that itself.
    """

    def marked(test: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(test)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return bounded(lambda: test(*args, **kwargs))
            except NeverEndedError:
                raise ContractBrokenError("deadline", "a call of the driver has not come back") from None
            except ContractBrokenError:
                raise
            except (AssertionError, DeviceError, pytest.fail.Exception) as error:
                raise ContractBrokenError(rule, one_line(error)) from error
            except (Exception, SystemExit) as error:
                named = rule if rule in _ANY_ERROR else "errors"
                raise ContractBrokenError(named, f"{type(error).__name__}: {one_line(error)}") from error

        marks: Any = run
        marks.contract_rule, marks.contract_also = rule, also
        return run

    return marked


def one_line(error: BaseException) -> str:
    """An error in a line, of no more than 300 characters."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - a driver's own error may fail at this
        text = ""
    return (text or type(error).__name__)[:300]
