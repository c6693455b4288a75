"""The client of one rack's gateway: calls over connections that are kept open and shared by threads."""

import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

from lumctl.devices.errors import GatewayUnreachableError, OutcomeUnknownError, WrongGatewayError
from lumctl.devices.gateway.wire import SCHEMA, error_heard
from lumctl.devices.permission import require_permission
from lumctl.devices.ways import Stream
from lumctl.json_lines import JsonLines

READ_WITHIN_S = 20.0
WRITTEN_WITHIN_S = 120.0
"""The time limit of a request, for a gateway that hangs: devices have their own limits."""
_GREETED_WITHIN_S = 5.0
_SENT_WITHIN_S = 10.0
_KEPT = 8
"""How many idle connections are kept."""


class Gateway:
    """One rack's gateway. ``dial`` connects to it, and ``where`` is its place in messages."""

    def __init__(self, rack: str, target: str, where: str, dial: Callable[[float], Stream]) -> None:
        self.rack = rack
        self._target = target
        self._on_rack = target == "rack"
        self._where = where
        self._dial = dial
        self._lock = threading.Lock()
        self._idle: list[JsonLines] = []

    def ask(self, request: Mapping[str, Any], *, about: str, writes: bool = False) -> Any:
        """The answer to one request.

        Raises:
            GatewayUnreachableError: the gateway does not answer; nothing was sent to the device.
            WrongGatewayError: another gateway answers there.
            OutcomeUnknownError: the gateway received a write and did not report its outcome.
            LumctlError: any error of the driver behind the gateway.
        """
        lines = self._connected(about)
        try:
            try:
                # Asked after the connection was made: the lease may have ended during that wait.
                require_permission()
                lines.send(request, _SENT_WITHIN_S)
            except OSError as error:
                # The gateway acts on no incomplete line, so nothing was written.
                raise self._lost(about, error) from error
            try:
                answer = lines.receive(WRITTEN_WITHIN_S if writes else READ_WITHIN_S)
            except (OSError, ValueError) as error:
                raise self._unanswered(about, error) if writes else self._lost(about, error) from error
        # Also after an interrupt: a late answer on this connection would be taken for the answer to another request.
        except BaseException:
            lines.close()
            raise
        self._keep(lines)
        if "error" in answer:
            raise _heard(answer["error"], wrote=writes)
        return answer.get("answer")

    def close(self) -> None:
        """Close the connections; the next call connects again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for lines in idle:
            lines.close()

    def _connected(self, about: str) -> JsonLines:
        while True:
            with self._lock:
                lines = self._idle.pop() if self._idle else None
            if lines is None:
                return self._greeted(about)
            if _still_there(lines):
                return lines
            lines.close()

    def _keep(self, lines: JsonLines) -> None:
        with self._lock:
            if len(self._idle) < _KEPT:
                self._idle.append(lines)
                return
        lines.close()

    def _greeted(self, about: str) -> JsonLines:
        try:
            lines = JsonLines(self._dial(_GREETED_WITHIN_S))
        except OSError as error:
            raise self._lost(about, error) from error
        try:
            self._require_ours(lines.receive(_GREETED_WITHIN_S), about)
        except BaseException as error:
            lines.close()
            if isinstance(error, OSError | ValueError):
                raise self._lost(about, error) from error
            raise
        return lines

    def _require_ours(self, greeting: Mapping[str, Any], about: str) -> None:
        if greeting.get("schema") != SCHEMA:
            raise ValueError("the program there is not a gateway of this version")
        if "refused" in greeting:
            raise ConnectionError(str(greeting["refused"]))
        rack, target = str(greeting.get("rack")), str(greeting.get("target"))
        if (rack, target) != (self.rack, self._target):
            raise WrongGatewayError(
                f"{about}: the gateway at {self._where} serves rack {rack} on target {target}, "
                f"not {self.rack} on target {self._target}; nothing was sent",
                hint="mend "
                + ("the rack's `gateway:` in the inventory, or " if self._on_rack else "")
                + "$LUMCTL_GATEWAY",
            )

    def _lost(self, about: str, error: Exception) -> GatewayUnreachableError:
        aimed = "" if self._on_rack else f" --target {self._target}; here $LUMCTL_GATEWAY sets it"
        return GatewayUnreachableError(
            f"{about}: the gateway of rack {self.rack} at {self._where} does not answer: {_reason(error)}; "
            "nothing was written",
            hint=f"only the gateway may write to the rack's devices; start it: lumctl gateway run {self.rack}{aimed}",
        )

    def _unanswered(self, about: str, error: Exception) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"{about}: the gateway of rack {self.rack} received a write and did not report its result: "
            f"{_reason(error)}",
            hint="read the device back before you write anything else to it",
        )


def _still_there(lines: JsonLines) -> bool:
    """Whether an idle connection still works: a write to a gateway that has ended would have an unknown outcome."""
    try:
        if isinstance(lines.stream, socket.socket):
            lines.stream.settimeout(0.0)
            lines.stream.recv(1, socket.MSG_PEEK)
            return False  # the gateway sent something without a request, or closed
        # A channel of an SSH session cannot be looked into without reading, so the gateway is asked.
        lines.send({"call": "ping"}, _GREETED_WITHIN_S)
        lines.receive(_GREETED_WITHIN_S)
    except BlockingIOError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _heard(said: Any, *, wrote: bool) -> Exception:
    try:
        return error_heard(said, wrote=wrote)
    except (KeyError, TypeError, AttributeError):
        return (OutcomeUnknownError if wrote else GatewayUnreachableError)(
            "the gateway failed and did not give a reason"
        )


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    strerror = getattr(error, "strerror", None)
    return str(strerror or error or type(error).__name__).lower()
