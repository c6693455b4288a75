"""The session with a vendor's mesh object: it is made and connected when needed, and discarded after any failure.

Vendors offer such objects by entry point. Calls of their code may hang, so each call has a time limit.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar, cast

from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.permission import require_permission
from lumctl.devices.protocols import DriverContext
from lumctl.devices.ways import Way

GROUP = "lumctl.smartlight_objects"
SIMULATED = "sim"
_SIMULATED_ADDRESS = "unix:/"


class MeshObject(Protocol):
    """The methods that the driver calls, as far as they are public. They may raise and return anything."""

    def connect(self) -> object:
        """Open the session; ``False`` means failure."""
        ...

    def disconnect(self) -> object:
        """Close the session."""
        ...

    def get_puc_states(self) -> object:
        """A mapping of every PUC's number to its coupling (0 bar, 1 cross) and phase (radians)."""
        ...

    def set_puc_states(self, states: Mapping[int, tuple[float, float]], /) -> object:
        """Set some PUCs; ``False`` means failure."""
        ...

    def get_output_power(self, ports: list[int], /) -> object:
        """The power that leaves each port: a mapping by port, or a sequence in the requested order."""
        ...

    def get_temp(self) -> object:
        """The temperature of the chip."""
        ...


Maker = Callable[[str, Way], MeshObject]


def found(context: DriverContext) -> tuple[str, Maker]:
    """The name of the package that offers the mesh object, and the function that makes the object.

    Raises:
        DeviceUnreachableError: no object is offered, or more than one, or it does not import.
    """
    simulated = context.address.startswith(_SIMULATED_ADDRESS)
    offers = sorted({p for p in entry_points(group=GROUP) if (p.name == SIMULATED) is simulated}, key=_origin)
    if not offers:
        raise DeviceUnreachableError(
            f"{context.device}: no installed package offers a SmartLight object; nothing was sent",
            hint=f"install the vendor's package, and one with an entry point of the group {GROUP}",
        )
    if len(offers) > 1:
        raise DeviceUnreachableError(
            f"{context.device}: {', '.join(map(_origin, offers))} all offer a SmartLight object; nothing was sent",
            hint="uninstall all but one of them",
        )
    return _origin(offers[0]), _imported(context, offers[0])


def _imported(context: DriverContext, point: EntryPoint) -> Maker:
    try:
        made = point.load()
    except (Exception, SystemExit) as error:  # a package may raise anything at import
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise DeviceUnreachableError(
            f"{context.device}: the SmartLight object of {_origin(point)} does not import: {reason}; nothing was sent",
            hint="install what it needs",
        ) from error
    if not callable(made):
        raise DeviceUnreachableError(
            f"{context.device}: the SmartLight object of {_origin(point)} cannot be created: it is not callable",
            hint=f"an entry point of {GROUP} must be a callable that accepts an address and a way to the device",
        )
    return cast("Maker", made)


def _origin(point: EntryPoint) -> str:
    package = point.dist
    return f"{package.name} {package.version} ({point.name})" if package else point.name


T = TypeVar("T")
_QUOTED = 160
"""Most characters of an error's text that are quoted."""


class CallFailedError(Exception):
    """The call raised, or returned an invalid value."""


class CallHangsError(Exception):
    """The call did not return in time; its effect may still happen."""


class StillHangingError(Exception):
    """An earlier call has not returned; no new call was made."""


class PatientCalls:
    """Runs each call in a separate thread, and waits for it with a time limit.

    A thread cannot be ended from outside. If a call hangs, its thread stays, and no other call is made until it
    returns: two calls at once might disturb each other.
    """

    def __init__(self) -> None:
        self._hanging: threading.Thread | None = None

    def run(self, call: Callable[[], T], timeout_s: float) -> T:
        """Run a call and return its result.

        Raises:
            CallFailedError: the call raised.
            CallHangsError: the call did not return in time; it still runs.
            StillHangingError: an earlier call still runs; no new call was made.
        """
        if self._hanging is not None and self._hanging.is_alive():
            raise StillHangingError
        results: SimpleQueue[tuple[bool, T | str]] = SimpleQueue()
        thread = threading.Thread(target=_run, args=(call, results), name="smartlight object", daemon=True)
        # The call continues even if Ctrl-C ends the wait.
        self._hanging = thread
        thread.start()
        try:
            returned, result = results.get(timeout=max(timeout_s, 0.0))
        except Empty:
            raise CallHangsError from None
        thread.join()
        if not returned:
            raise CallFailedError(result)
        return result  # type: ignore[return-value]  # a successful call puts its result here


def _run(call: Callable[[], T], results: SimpleQueue[tuple[bool, T | str]]) -> None:
    try:
        results.put((True, call()))
    except BaseException as error:  # noqa: BLE001 - foreign code: catches SystemExit as well
        results.put((False, _said(error)))


def _said(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - an error that cannot even be printed
        text = ""
    name = type(error).__name__
    line = "".join(c if c.isprintable() else "?" for c in text)
    return f"{name}: {line[:_QUOTED]}" if line else name


_BACKGROUND_S = 0.5
"""Time limit for disconnecting an object that has failed."""


class ObjectSession:
    """Reads from and writes to one object, within a :meth:`deadline`. Only one thread may use it at a time."""

    def __init__(self, context: DriverContext, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._context = context
        self._clock = clock
        self._calls = PatientCalls()
        self._object: MeshObject | None = None
        self.origin = ""
        """The package that offers the object; empty before the first connection."""

    def deadline(self) -> float:
        """The deadline of a call that begins now."""
        return self._clock() + self._context.timeout_s

    def ask(self, what: str, question: Callable[[MeshObject], T], until: float) -> T:
        """Read from the object by ``question``. If an object from an earlier call fails, a new one is tried once.

        Raises:
            DeviceUnreachableError: there is no object, it does not connect, or it gives no valid answer.
        """
        if self._object is not None:
            # It may have lost its connection since; a question may be asked again, because it changes nothing.
            with contextlib.suppress(CallFailedError):
                return self._asked(what, question, self._object, until)
            self._drop(until)
        fresh = self._connected(until)
        try:
            return self._asked(what, question, fresh, until)
        except CallFailedError as error:
            self._drop(until)
            raise self._unreachable(f"{what} could not be read: {error}") from error

    def tell(self, order: Callable[[MeshObject], object], until: float) -> None:
        """Have the object write. Call :meth:`ask` first: it connects the object.

        Raises:
            DeviceUnreachableError: no object is connected.
            OutcomeUnknownError: the write failed, or did not return in time.
        """
        held = self._object
        if held is None:
            raise self._unreachable("it is not connected")
        require_permission()  # checked here, since the call runs in another thread and bypasses the ways
        try:
            said = self._calls.run(lambda: order(held), until - self._clock())
        except StillHangingError as error:
            raise self._still_hanging() from error
        except CallHangsError as error:
            self._object = None
            raise self._unknown("and has not returned in time") from error
        except CallFailedError as error:
            self._drop(until)
            raise self._unknown(f"and failed: {error}") from error
        if said is False:
            raise self._unknown("and gave False")

    def close(self) -> None:
        """Disconnect the object, if there is one; it is discarded even if it does not disconnect."""
        self._drop(self.deadline())

    def _connected(self, until: float) -> MeshObject:
        self.origin, maker = found(self._context)

        def opened() -> MeshObject:
            made = maker(self._context.address, self._context.way)
            if made.connect() is False:
                raise ConnectionError("connect() gave False")
            return made

        try:
            self._object = self._calls.run(opened, until - self._clock())
        except StillHangingError as error:
            raise self._still_hanging() from error
        except CallHangsError as error:
            raise self._unreachable("it does not connect in time") from error
        except CallFailedError as error:
            raise self._unreachable(f"it does not connect: {error}") from error
        return self._object

    def _asked(self, what: str, question: Callable[[MeshObject], T], held: MeshObject, until: float) -> T:
        try:
            return self._calls.run(lambda: question(held), until - self._clock())
        except StillHangingError as error:
            raise self._still_hanging() from error
        except CallHangsError as error:
            self._object = None
            # It is not disconnected, because the call that hangs still uses it.
            raise self._unreachable(f"{what} could not be read in time") from error

    def _drop(self, until: float) -> None:
        held, self._object = self._object, None
        if held is None:
            return
        # The object is not used again, so a failure to disconnect does not matter.
        with contextlib.suppress(CallFailedError, CallHangsError, StillHangingError):
            self._calls.run(lambda: held.disconnect(), min(_BACKGROUND_S, until - self._clock()))  # noqa: PLW0108

    def _still_hanging(self) -> DeviceUnreachableError:
        return self._unreachable(
            "an earlier call into its object has not returned",
            hint="it may still take effect; if it never returns, restart lumctl and read the device",
        )

    def _unreachable(self, what: str, hint: str | None = None) -> DeviceUnreachableError:
        where = f"{self._context.device} at {self._context.address}"
        return DeviceUnreachableError(f"{where}: {what}; nothing was sent", hint=hint)

    def _unknown(self, what: str) -> OutcomeUnknownError:
        where = f"{self._context.device} at {self._context.address}"
        return OutcomeUnknownError(
            f"{where}: its object was asked to set PUCs {what}; they may or may not have changed",
            hint="read the device back before you rely on it",
        )
