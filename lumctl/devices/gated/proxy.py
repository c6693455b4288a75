"""A driver that stands for one behind a gateway: the same kind and capabilities, every call handed over."""

from collections.abc import Callable
from typing import Any, ClassVar

from lumctl.devices.errors import GatewayUnreachableError, OutcomeUnknownError
from lumctl.devices.gated.client import Gateway
from lumctl.devices.gated.subject import Subject
from lumctl.devices.protocols import Driver
from lumctl.devices.recorded_calls import WRITES, bound, signatures
from lumctl.devices.recorded_values import decode, encode
from lumctl.devices.types import Capability

Fence = Callable[[], int | None]
"""The lease number under which is written now, if a run has said one."""


def gated(gateway: Gateway, subject: Subject, written: str, fence: Fence) -> Driver:
    """The driver of a subject behind a gateway, which is asked what it can do.

    ``written`` is what our inventory says of the subject; each call carries the number that ``fence`` gives then.

    Raises:
        GatewayUnreachableError: the gateway does not answer.
        WrongGatewayError: its inventory says otherwise of the subject.
    """
    said = gateway.ask({**_address(subject), "call": "describe", "written": written}, about=subject.name)
    known = {each.value for each in Capability}
    try:
        about = {
            "kind": subject.kind,
            "capabilities": frozenset(Capability(each) for each in said["capabilities"] if each in known),
            "proven": str(said["proven"]),
        }
    except (KeyError, TypeError) as error:
        raise GatewayUnreachableError(f"{subject.name}: the gateway does not say what it can do") from error
    calls = {name: _call(name) for name in signatures(subject.kind)}
    made: Any = type("GatedDriver", (_Gated,), about | calls)
    driver: Driver = made(gateway, subject, fence)
    return driver


class _Gated:
    """The calls of its kind are put in by :func:`gated`."""

    api_version: ClassVar[int] = 1
    kind: ClassVar[str]

    def __init__(self, gateway: Gateway, subject: Subject, fence: Fence) -> None:
        self._gateway = gateway
        self._subject = subject
        self._fence = fence

    def close(self) -> None:
        """Do nothing: the connections belong to all drivers of the rack, and the device's to the gateway."""

    def _ask(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arguments = {key: encode(value) for key, value in bound(self.kind, name, args, kwargs).items()}
        # A read carries it too: from then on no older lease begins a write.
        request = {**_address(self._subject), "call": name, "arguments": arguments, "fence": self._fence()}
        writes = name in WRITES
        answer = self._gateway.ask(request, about=self._subject.name, writes=writes)
        try:
            return decode(answer)
        except ValueError as error:
            kind = OutcomeUnknownError if writes else GatewayUnreachableError
            raise kind(f"{self._subject.name}: what its gateway answered is not understood: {error}") from error


def _address(subject: Subject) -> dict[str, Any]:
    return {"kind": subject.kind, "id": subject.id, "component": subject.component}


def _call(name: str) -> Callable[..., Any]:
    def call(self: _Gated, *args: Any, **kwargs: Any) -> Any:
        return self._ask(name, args, kwargs)

    return call
