"""A driver whose faults affect its own device only: each call has a time limit, and each answer is checked."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from lumctl.containment import Culprit, LateError, MisbehavedError, contained, contained_here
from lumctl.devices.answers import fault_of
from lumctl.devices.errors import DeviceError, DriverFaultError, OutcomeUnknownError
from lumctl.devices.protocols import Driver, DriverContext
from lumctl.devices.recorded_calls import WRITES, bound, forwarding
from lumctl.devices.types import Capability
from lumctl.errors import LumctlError

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

GRACE_S = 1.0
"""Seconds that a call may take beyond the driver's own time limit before it is abandoned."""
CLOSES_WITHIN_S = 1.0


def open_contained(driver: type[Driver], context: DriverContext, culprit: Culprit) -> Driver:
    """A driver of that class, opened and contained: its calls raise nothing but device errors.

    Any other error, an answer that the Protocol does not allow, and a late answer become a ``DriverFaultError``, or an
    ``OutcomeUnknownError`` if the call may have changed the device. A call may take ``context.timeout_s``, or longer
    according to the driver's ``slow_calls``, plus the time that the device needs to settle.

    Raises:
        DriverFaultError: the driver cannot be opened.
    """

    def opened() -> tuple[Driver, Mapping[str, Any]]:
        made = driver(context)
        # Its attributes may be properties that raise or hang, so they are read inside the time limit too.
        slow = dict(getattr(made, "slow_calls", {}))
        return made, {
            "api_version": made.api_version,
            "kind": made.kind,
            "proven": str(made.proven),
            "slow_calls": {name: float(seconds) for name, seconds in slow.items()},
        }

    try:
        made, about = _bounded(culprit, f"opening {context.device}", opened, context.timeout_s + GRACE_S)
    except DeviceError:
        raise
    except LumctlError as error:
        # With its cause: DeviceSet looks there for a call that may still be running.
        raise DriverFaultError(error.message, hint=error.hint) from error
    calls = forwarding(driver.kind, lambda self, name, args, kwargs: self._ask(name, args, kwargs))
    built: Any = type(f"Contained{driver.__name__}", (_Contained,), {**about, **calls})
    ready: Driver = built(made, context, culprit)
    return ready


def class_of(driver: Driver) -> type[Driver]:
    """The class of a driver, contained or not."""
    return type(driver._driver) if isinstance(driver, _Contained) else type(driver)  # noqa: SLF001 - it is of this file


class _Closed:
    """Replaces a driver that was closed."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    def close(self) -> None:
        """Do nothing: it is already closed."""

    def __getattr__(self, name: str) -> Any:
        raise DriverFaultError(f"{name} was called on a driver that was closed")


class _Contained:
    """A driver behind isolation; :func:`open_contained` adds the calls of its kind and its attributes."""

    kind: ClassVar[str]
    slow_calls: ClassVar[Mapping[str, float]]

    def __init__(self, driver: Driver, context: DriverContext, culprit: Culprit) -> None:
        self._driver: Any = driver
        self.context = context
        self._culprit = culprit
        self._late: tuple[str, Future[Any], float] | None = None
        # getattr_static runs no code of the plug-in; getattr would run a property outside the time limit.
        self._is_plain = isinstance(getattr_static(driver, "capabilities", None), frozenset)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The driver's capabilities. A plain attribute is read directly; a property may have to read the device."""
        if self._is_plain:
            declared: frozenset[Capability] = self._driver.capabilities
            return declared
        able = self._contained("capabilities", lambda: self._driver.capabilities)
        if not isinstance(able, frozenset) or not all(isinstance(each, Capability) for each in able):
            raise self._fault("capabilities", "returned something other than a frozenset of Capability")
        return able

    def close(self) -> None:
        """Close the driver, if it can be closed."""
        driver = [self._driver]
        if not self._culprit.is_ours:
            self._driver = _Closed()  # only the call below still refers to it, because freeing it may hang too
        with suppress(LumctlError):
            _bounded(self._culprit, "close", lambda: driver.pop().close(), CLOSES_WITHIN_S)

    def _ask(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        answer = self._contained(name, lambda: getattr(self._driver, name)(*args, **kwargs))
        wrong = fault_of(self.kind, name, answer, bound(self.kind, name, args, kwargs), self.context)
        if wrong:
            raise self._fault(name, wrong)
        return answer

    def _contained(self, name: str, call: Callable[[], Any]) -> Any:
        self._require_back()
        limit_s = max(self.context.timeout_s, self.slow_calls.get(name, 0.0)) + self.context.settle_s + GRACE_S
        try:
            return _bounded(self._culprit, f"{name} of {self.context.device}", call, limit_s)
        except DeviceError:
            raise
        except LateError as error:
            self._late = name, error.late, time.monotonic()
            raise self._failed(name, error) from error
        except LumctlError as error:
            raise self._failed(name, error) from error

    def _require_back(self) -> None:
        """Refuse a call while an earlier one has not returned: two calls at once may do more harm."""
        if self._late is None:
            return
        name, call, since = self._late
        if not call.done():
            for_s = time.monotonic() - since
            said = f"{name} of {self.context.device} was abandoned {for_s:.0f} s ago and has not returned"
            raise DriverFaultError(f"{self._culprit}: {said}")
        self._late = None

    def _fault(self, name: str, what: str) -> DeviceError:
        return self._failed(name, MisbehavedError(self._culprit, f"{name} of {self.context.device}", what))

    @staticmethod
    def _failed(name: str, error: LumctlError) -> DeviceError:
        # A write may have reached the device before the driver failed.
        kind = OutcomeUnknownError if name in WRITES else DriverFaultError
        return kind(error.message, hint=error.hint)


def _bounded(culprit: Culprit, name: str, call: Callable[[], T], within_s: float) -> T:
    """Make a call within its time limit; lumctl's own drivers keep the limit by themselves."""
    return contained_here(culprit, name, call) if culprit.is_ours else contained(culprit, name, call, within_s)
