"""The rules of the contract by name: what each requires and what usually breaks it. A failing test names its rule."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, ParamSpec, TypeVar

import pytest

from lumctl import printable
from lumctl.devices.errors import DeviceError
from lumctl.devices.testing.time_limit import NeverEndedError, bounded

P = ParamSpec("P")
T = TypeVar("T")

NOT_TESTED = "not tested: "
"""Prefix of the reason for a skip that leaves the driver untested."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the contract. ``cause`` is what usually breaks it."""

    text: str
    cause: str


RULES = {
    "loading": Rule(
        "the package imports, its driver was written for this driver API, and the tests that run the kit import",
        "a library that it needs is not installed, or not declared as a requirement of the package",
    ),
    "declaration": Rule(
        "a driver states api_version, kind, capabilities and what it was tested on",
        "a capability is written as text, or `proven` is empty",
    ),
    "opening": Rule(
        "constructing a driver contacts nothing; its first call may connect",
        "the connection is opened in __init__",
    ),
    "identity": Rule(
        "identify() returns one printable line, and raises InconsistentError for a device of another size",
        "the device's banner is returned unchanged, or its size is not compared with the context's",
    ),
    "types": Rule(
        "every answer has the type that its Protocol states",
        "a value is returned as the device wrote it: text for a number or a state, a list or dict for a dataclass",
    ),
    "units": Rule(
        "powers are in dBm (-inf: no light), temperatures in degrees Celsius, times in epoch seconds, ages in seconds, "
        "frequencies in MHz, electrical power in watts",
        "a power is given in mW (0.2), a temperature in Kelvin (300) or Fahrenheit (88), or a time in place of an age",
    ),
    "numbering": Rule(
        "PUCs and ports are numbered from 0 to one less than the inventory's count",
        "front-panel numbers, which begin at 1, are passed on, or a list of ports is read from the wrong position",
    ),
    "errors": Rule(
        "a call raises only the errors of lumctl.devices.errors",
        "an error of the socket, the parser or the vendor's library is not caught",
    ),
    "unreachable": Rule(
        "if nothing was sent or nothing can be read, the error is DeviceUnreachableError, and no value is invented",
        "the previous answer is returned again, or a failed connection is reported as refused or unknown",
    ),
    "refused": Rule(
        "an impossible change is refused as a whole with DeviceRefusedError, before anything changes",
        "numbers are not checked when a change is staged, or raise an IndexError",
    ),
    "undeclared": Rule(
        "a call whose capability is not declared raises UnsupportedError before anything is sent",
        "a method is implemented but its capability is not declared, or the reverse",
    ),
    "deadline": Rule(
        "a call ends within context.timeout_s (or its own entry in slow_calls), however the device behaves",
        "the time limit applies to each byte or retry instead of the whole call, or there is none",
    ),
    "staging": Rule(
        "stage and compare change nothing on the device, and return its previous values",
        "staging writes to the device, or to its candidate configuration without discarding it",
    ),
    "read-afresh": Rule(
        "every reading is read from the device",
        "a reading returns values remembered from the last reading or write",
    ),
    "commit": Rule(
        "a commit writes what was staged and nothing else, and returns when the device holds it",
        "commit returns when the device has queued the change, or writes ports that the change does not name",
    ),
    "idempotent": Rule(
        "repeating a commit, a switch or a setting is harmless",
        "a toggle is sent instead of a state, or a command is repeated to a device already in that state",
    ),
    "outcome": Rule(
        "after a lost or corrupted answer a write raises OutcomeUnknownError or reads back: success means that the "
        "device holds the change; unreachable and refused mean that nothing changed",
        "a timeout after sending is reported as unreachable, refused or success",
    ),
    "half-applied": Rule(
        "a change made in part is never reported as refused or unreachable",
        "several requests are sent for one change, and the error of the last one is reported",
    ),
    "atomic": Rule(
        "a driver that declares ATOMIC makes all of a change or none of it",
        "several requests are sent for one change",
    ),
    "roll-back": Rule(
        "roll_back writes all previous values, and refuses if one of them is not known",
        "the receipt's `before` values are not used, or unknown ones are skipped",
    ),
    "confirm": Rule(
        "confirm disarms the device's revert timer, and does nothing if there is none",
        "the confirm request is not sent, or is sent in a different session from the commit",
    ),
    "revert-timer": Rule(
        "a requested revert timer is armed, or UnsupportedError is raised and nothing is sent",
        "revert_after_s is ignored",
    ),
    "foreign": Rule(
        "connections that a change does not list stay in place",
        "the egress port is freed first, even if another connection uses it",
    ),
    "read-back": Rule(
        "a setting reaches the device, and is read back from it before the call returns",
        "the value sent is remembered and returned as a reading, or another port, lane or outlet is set and read",
    ),
    "readings": Rule(
        "a reading is what the device measures at that port, lane or outlet, in the unit of the contract",
        "a value is passed on in mW, A, kW or Fahrenheit, or taken from the next port or lane",
    ),
    "alarms": Rule(
        "an alarm is reported with its own source, severity and time for as long as the device raises it",
        "front-panel port numbers are passed on, a value is constant, ended alarms are kept, or the twin does not "
        "pass on the alarms of its device",
    ),
    "progress": Rule(
        "read_progress() is None only if the device is not working on a change",
        "the device is not asked, or its answer to the change is taken for its completion",
    ),
    "silence": Rule(
        "a driver prints nothing: standard output belongs to the command",
        "a print() left from debugging, or a library that prints",
    ),
    "closing": Rule(
        "close releases everything, and a second call does nothing",
        "close uses an attribute that the first call set to None",
    ),
}


_ANY_ERROR = ("closing", "opening")
"""Rules that every unexpected error breaks."""


class ContractBrokenError(AssertionError):
    """A rule of the contract is broken. The message states the rule, what was found, and the usual cause."""

    def __init__(self, rule: str, found: str) -> None:
        self.rule, self.found = rule, found
        told = RULES[rule]
        super().__init__(f"rule {rule!r}: {told.text}\n  found: {found}\n  usual cause: {told.cause}")


def broken(rule: str, found: str) -> NoReturn:
    """Fail because a rule is broken.

    Raises:
        ContractBrokenError: always.
    """
    raise ContractBrokenError(rule, found)


def not_tested(reason: str) -> NoReturn:
    """Skip a test that cannot test this driver; reports count it and give the reason."""
    pytest.skip(f"{NOT_TESTED}{reason}")


def proves(rule: str, *also: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Mark a test as the proof of a rule, which its failure names. A driver's foreign error breaks ``errors``.

    A passing test also proves the rules ``also``; a failing one names the rule that is broken.
    """

    def marked(test: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(test)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return bounded(lambda: test(*args, **kwargs))
            except NeverEndedError:
                raise ContractBrokenError("deadline", "a call of the driver did not return") from None
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
    """An error in one line of at most 300 characters."""
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - printing a driver's own error may fail
        text = ""
    return printable.one_line(text or type(error).__name__, 300)
