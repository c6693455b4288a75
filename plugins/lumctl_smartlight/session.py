"""One object of a mesh, made and connected when it is needed, and thrown away when anything about it is in doubt."""

import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.permission import require_permission
from lumctl.devices.protocols import DriverContext
from lumctl_smartlight.calls import CallFailedError, CallHangsError, PatientCalls, StillHangingError
from lumctl_smartlight.objects import MeshObject, found

T = TypeVar("T")
_BACKGROUND_S = 0.5
"""How long an object that has failed may take to disconnect, at most."""


class ObjectSession:
    """Asks and tells one object, each before a deadline of :meth:`deadline`. For one thread at a time."""

    def __init__(self, context: DriverContext, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._context = context
        self._clock = clock
        self._calls = PatientCalls()
        self._object: MeshObject | None = None
        self.origin = ""
        """Who offers the object, once there is one."""

    def deadline(self) -> float:
        """When a call that begins now is to have ended."""
        return self._clock() + self._context.timeout_s

    def ask(self, what: str, question: Callable[[MeshObject], T], until: float) -> T:
        """What the object gives, read by ``question``. An object from an earlier call that fails is replaced, once.

        Raises:
            DeviceUnreachableError: there is no object, it does not connect, or it gives no answer that can be used.
        """
        if self._object is not None:
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
        """Have the object write. There must be one, from an :meth:`ask` of the same call.

        Raises:
            DeviceUnreachableError: there is none.
            OutcomeUnknownError: the write failed, or did not return in time.
        """
        held = self._object
        if held is None:
            raise self._unreachable("it is not connected")
        require_permission()  # here, for its call runs in another thread and does not pass the ways
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
        """Disconnect, if there is anything to disconnect; an object that will not is left behind."""
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
            raise self._unreachable(f"{what} could not be read in time") from error

    def _drop(self, until: float) -> None:
        held, self._object = self._object, None
        if held is None:
            return
        # How an object ends that is not used again changes nothing.
        with contextlib.suppress(CallFailedError, CallHangsError, StillHangingError):
            self._calls.run(lambda: held.disconnect(), min(_BACKGROUND_S, until - self._clock()))  # noqa: PLW0108

    def _still_hanging(self) -> DeviceUnreachableError:
        return self._unreachable(
            "an earlier call into its object has not returned",
            hint="it may yet act; if it never returns, start lumctl again and read the device",
        )

    def _unreachable(self, what: str, hint: str | None = None) -> DeviceUnreachableError:
        where = f"{self._context.device} at {self._context.address}"
        return DeviceUnreachableError(f"{where}: {what}; nothing was sent", hint=hint)

    def _unknown(self, what: str) -> OutcomeUnknownError:
        where = f"{self._context.device} at {self._context.address}"
        return OutcomeUnknownError(
            f"{where}: its object was told to set PUCs {what}; they may or may not have changed",
            hint="read the device back before relying on it",
        )
