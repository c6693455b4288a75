"""Requests to a gateway: check the subject and the arguments, and call the driver."""

from collections.abc import Callable, Mapping
from typing import Any

from lumctl.daemon.gateway.fencing import Fence
from lumctl.daemon.gateway.writes import FencedWrites, require_there
from lumctl.devices.errors import DeviceRefusedError, WrongGatewayError
from lumctl.devices.gateway.wire import FENCED, GatewaySubject, error_said, rack_of, written
from lumctl.devices.protocols import Driver
from lumctl.devices.recorded_calls import bound, signatures
from lumctl.devices.recorded_values import decode, encode
from lumctl.devices.registry import DeviceSet
from lumctl.devices.types import JoinChange, PucChange, PucState, Receipt, Staged
from lumctl.errors import LumctlError, UsageError
from lumctl.inventory.model import DeviceKind, Inventory, PartOf
from lumctl.sockets import Peer

Check = Callable[[Any], bool]

Call = Callable[[Mapping[str, Any], Peer], Any]
"""Answers a request of a client."""


class RequestHandler:
    """Answers requests for the devices of one rack. Thread-safe: each device serves one request at a time.

    ``others`` answer the requests that are no call of a driver, by name.
    """

    def __init__(
        self,
        inventory: Inventory,
        rack: str,
        devices: DeviceSet,
        fence: Fence,
        writes: FencedWrites,
        *,
        say: Callable[[str], None],
        others: Mapping[str, Call] | None = None,
    ) -> None:
        self._inventory = inventory
        self._rack = rack
        self._devices = devices
        self._fence = fence
        self._writes = writes
        self._say = say
        self._others = others or {}

    def answer(self, request: Mapping[str, Any], peer: Peer) -> dict[str, Any]:
        """The answer to a request. An error is returned as an answer too."""
        try:
            return {"answer": self._answered(request, peer)}
        except LumctlError as error:
            return error_said(error)
        except ValueError as error:
            return error_said(DeviceRefusedError(f"the gateway cannot interpret the request: {error}"))
        except Exception as error:  # noqa: BLE001 - a bug of one driver must not affect other devices
            self._say(f"{request.get('call')} of {request.get('id')}: {type(error).__name__}: {error}")
            return error_said(error)

    def _answered(self, request: Mapping[str, Any], peer: Peer) -> Any:
        call = request.get("call")
        if isinstance(call, str) and call in self._others:
            return self._others[call](request, peer)
        subject = self._subject(request)
        if call == "describe":
            return self._described(subject, request.get("written"))
        given = arguments(subject.kind, str(call), request.get("arguments"))
        fence = request.get("fence")
        if fence is not None and (not isinstance(fence, int) or isinstance(fence, bool)):
            raise ValueError("a lease number must be a whole number")
        with self._writes.turn(subject):
            driver = self._driver(subject)
            if call in FENCED:
                line = {"device": subject.name, "call": call}
                return self._writes.write(line, peer, lambda: fence, lambda: encode(getattr(driver, call)(**given)))
            self._fence.look(fence)
            require_there(peer)
            return encode(getattr(driver, str(call))(**given))

    def _subject(self, request: Mapping[str, Any]) -> GatewaySubject:
        kind, name, component = (request.get(key) for key in ("kind", "id", "component"))
        if not (isinstance(kind, str) and isinstance(name, str) and isinstance(component, str)):
            raise ValueError("the request does not name its device")  # noqa: TRY004
        if kind not in {"mesh", "switch", "transponder", "power"}:
            raise ValueError(f"{kind!r} is not a kind of driver")
        subject = GatewaySubject(kind, name, component)
        if component and not (kind == "power" and self._is_wired(subject)):
            raise UsageError(f"the gateway's inventory has no {kind} {subject.name}")
        rack = rack_of(self._inventory, subject)
        if rack != self._rack:
            raise WrongGatewayError(f"{name} is in rack {rack}, but this is the gateway of {self._rack}")
        return subject

    def _described(self, subject: GatewaySubject, theirs: Any) -> dict[str, Any]:
        driver = self._driver(subject)
        ours = written(self._inventory, subject)
        if theirs != ours:
            raise WrongGatewayError(
                f"the gateway's inventory has a different {subject.name}: {ours!r}, not {theirs!r}",
                hint="after an edit of the inventory, restart the gateway",
            )
        return {"capabilities": sorted(driver.capabilities), "proven": driver.proven}

    def _driver(self, subject: GatewaySubject) -> Driver:
        if subject.kind == "transponder":
            return self._devices.transponder(subject.id)
        device = self._inventory.devices[subject.id]
        if subject.kind == "power":
            if device.kind is not DeviceKind.POWER:
                raise UsageError(f"{subject.id} is a {device.kind}: it does not control the power of a host")
            return self._devices.power(PartOf(subject.id, subject.component))
        return self._devices.mesh(subject.id) if subject.kind == "mesh" else self._devices.switch(subject.id)

    def _is_wired(self, subject: GatewaySubject) -> bool:
        """Whether a host of the inventory uses this part; other names must not open drivers."""
        part = PartOf(subject.id, subject.component)
        return any(host.power == part for host in self._inventory.hosts.values())


def arguments(kind: str, call: str, said: Any) -> dict[str, Any]:
    """The arguments of a call by name, decoded and checked.

    Raises:
        ValueError: there is no such call, or the arguments do not fit it.
    """
    if call not in signatures(kind):
        raise ValueError(f"a {kind} has no call {call!r}")
    if not isinstance(said, dict):
        raise ValueError("its arguments are not an object")  # noqa: TRY004 - the input is wrong, not the caller's type
    try:
        given = bound(kind, call, (), {name: decode(value) for name, value in said.items()})
    except TypeError as error:
        raise ValueError(str(error)) from None
    for name, value in given.items():
        if not CHECKS[name](value) or (name in {"staged", "receipt"} and not _of(kind, value)):
            raise ValueError(f"{name} of {call} has an invalid value")
    return given


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return _whole(value) or isinstance(value, float)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _states(value: Any) -> bool:
    return isinstance(value, Mapping) and all(_whole(k) and isinstance(v, PucState) for k, v in value.items())


def _joins(value: Any) -> bool:
    return isinstance(value, Mapping) and all(_whole(k) and (v is None or _whole(v)) for k, v in value.items())


def _ports(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_whole, value))


def _receipt(value: Any) -> bool:
    return isinstance(value, Receipt) and all(map(_flag, (value.revert_armed, value.complete))) and _text(value.text)


def _of(kind: str, value: Any) -> bool:
    """Whether a change fits a device of this kind."""
    staged = value.staged if isinstance(value, Receipt) else value
    if not isinstance(staged, Staged) or not _text(staged.token) or not isinstance(staged.changes, tuple):
        return False
    return all(map(_join if kind == "switch" else _puc, staged.changes))


def _puc(change: Any) -> bool:
    return (
        isinstance(change, PucChange)
        and _whole(change.puc)
        and (change.before is None or isinstance(change.before, PucState))
        and isinstance(change.after, PucState)
    )


def _join(change: Any) -> bool:
    return (
        isinstance(change, JoinChange)
        and all(number is None or _whole(number) for number in (change.before, change.after))
        and _whole(change.ingress)
    )


CHECKS: Mapping[str, Check] = {
    "changes": _states,
    "joins": _joins,
    "staged": lambda value: isinstance(value, Staged),
    "receipt": _receipt,
    "revert_after_s": lambda value: value is None or _number(value),
    "ports": _ports,
    "port": _whole,
    "enabled": _flag,
    "label": _text,
    "frequency_mhz": _whole,
    "dbm": _number,
    "mark": _text,
    "on": _flag,
    "force": _flag,
}
"""The parsers of arguments, by argument name; a name means the same in all protocols."""
