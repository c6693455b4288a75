"""A worker in its agent: process, newest message of each kind, silence; and the request to start it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumctl.training.protocol import WANTS, BrokenLineError, Message

if TYPE_CHECKING:
    from lumctl.training.agent.connections import AgentPeer
    from lumctl.training.agent.process import Process

FAILED, ENDED, EXITING = "failed", "ended", "exiting"
BEAT, STEPPED, JOINED = "beat", "stepped", "joined"
WATCHED_FROM = frozenset({"ready", JOINED})
"""After one of these messages a worker must send heartbeats."""
FLEETING = frozenset({"hello", BEAT, STEPPED, WANTS})
"""Frequent messages, which are not recorded for the next agent."""
REMEMBERED = FLEETING | WATCHED_FROM | {"broken", "held", "loaded", "saved", FAILED, ENDED, EXITING}
HEARTBEAT_S, SILENCE_S = 2.0, 600.0
BEATS = 8
"""The number of heartbeats sent, and of checks of a silent worker, within ``heartbeat_s``."""
STALLED = 0.25
"""An agent that was itself delayed by more than this share of ``heartbeat_s`` does not judge silence."""
MOST_WAITING = 100
LONGEST_NAME = 100
_RECORDED: Mapping[str, Any] = {
    "worker": str,
    "accelerator": str,
    "heartbeat_s": int | float,
    "silence_s": int | float,
    "pid": int | None,
    "started": int | None,
    "alive": bool,
    "code": int | None,
    "signal": int | None,
    "at": int | float | None,
    "last": dict,
}


@dataclass(slots=True, eq=False)
class Worker:
    """One worker. It counts as ``alive`` before it has a ``pid``, while it is being started.

    ``at`` is the time of its end (time.time()), ``heard_at`` the time of its last message (time.monotonic()).
    """

    worker: str
    accelerator: str
    heartbeat_s: float = HEARTBEAT_S
    silence_s: float = SILENCE_S
    pid: int | None = None
    started: int | None = None
    alive: bool = True
    code: int | None = None
    signal: int | None = None
    at: float | None = None
    last: dict[str, Message] = field(default_factory=dict)
    process: "Process | None" = None
    peer: "AgentPeer | None" = None
    waiting: list[Message] = field(default_factory=list)
    heard_at: float = 0.0
    ran_at: float = 0.0
    """When it was last seen running while silent: a thread may hold Python's interpreter lock for long."""
    looked_at: float = 0.0
    silent: bool = False
    guarded: bool = False
    """A death watch waits for this worker."""
    prints_from: int | None = None
    """The length of its log when it started, in bytes; ``None`` if another agent started it."""

    def said(self, message: Message, now: float) -> bool:
        """Record a message as the newest of its kind; return whether the worker had been silent.

        Raises:
            BrokenLineError: the message has no kind.
        """
        kind = message.get("say")
        if not isinstance(kind, str):
            raise BrokenLineError("a message without a word in `say`")
        if kind in REMEMBERED:
            self.last.pop(kind, None)
            self.last[kind] = message
        self.heard_at = now
        was, self.silent = self.silent, False
        return was

    @property
    def got_ready(self) -> bool:
        """Whether it was ever ready for a rank."""
        return bool(WATCHED_FROM & self.last.keys())

    def lacks_step(self, message: Message) -> bool:
        """Whether it belongs to the group of a ``stepped`` message, and has not reported that step."""
        joined, stepped = self.last.get(JOINED, {}), self.last.get(STEPPED, {})
        return joined.get("generation") == message.get("generation") and stepped.get("done") != message.get("done")

    @property
    def look_at(self) -> float:
        """When to check whether it runs; infinity if it sends no heartbeats, or its silence was reported."""
        if not self.alive or self.silent or not self.got_ready or EXITING in self.last:
            return math.inf
        beat_s = self.heartbeat_s / BEATS
        return max(self.heard_at + 2 * beat_s, self.looked_at + beat_s)

    def falls_silent(self, now: float, *, runs: bool, late_s: float) -> bool:
        """Decide whether it hangs: its process is stopped, or has been silent for too long.

        ``late_s``: the agent's own delay in seconds.
        """
        if now < self.look_at:
            return False
        self.looked_at = now
        if late_s > STALLED * self.heartbeat_s:
            # Perhaps the whole host was stopped: the worker gets its full time again.
            self.heard_at = now
            return False
        if runs:
            self.ran_at = now
            self.silent = now >= self.heard_at + self.silence_s
        else:
            self.silent = now >= max(self.heard_at, self.ran_at) + self.heartbeat_s
        return self.silent

    def document(self) -> dict[str, Any]:
        """The worker as ``list`` reports it."""
        return {
            "worker": self.worker,
            "accelerator": self.accelerator,
            "pid": self.pid,
            "alive": self.alive,
            "code": self.code,
            "signal": self.signal,
            "at": self.at,
            "silent": self.silent,
            "connected": self.peer is not None,
            "last": self.last,
        }

    def record(self) -> dict[str, Any]:
        """The worker as the next agent needs it."""
        last = {kind: message for kind, message in self.last.items() if kind not in FLEETING}
        return {**{name: getattr(self, name) for name in _RECORDED}, "last": last}


def worker_of(record: Mapping[str, Any]) -> Worker:
    """A worker from its record.

    Raises:
        TypeError: the record was not written by an agent.
    """
    if set(record) != _RECORDED.keys() or not all(isinstance(record[name], kind) for name, kind in _RECORDED.items()):
        raise TypeError("not a worker's record")
    return Worker(**record)


class RequestRefusedError(Exception):
    """Nothing was done; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class StartOrder:
    """A worker to start. Its default ``folder`` is that of the job; ``~`` is the home folder."""

    worker: str
    accelerator: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path | None
    heartbeat_s: float
    silence_s: float


def order_of(ask: Message) -> StartOrder:
    """The worker in a ``start`` request.

    Raises:
        RequestRefusedError: it is incomplete or invalid.
    """
    argv, environment, folder = ask.get("argv"), ask.get("environment") or {}, ask.get("folder")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        raise RequestRefusedError(f"argv must be a program and its arguments: {_short(argv)}")
    if not isinstance(environment, dict) or not all(isinstance(value, str) for value in environment.values()):
        # The value is not shown: there are secrets in it.
        raise RequestRefusedError("environment must give a text for each variable")
    if not isinstance(folder, str | None):
        raise RequestRefusedError(f"folder must be a path: {_short(folder)}")
    return StartOrder(
        worker=name_in(ask, "worker"),
        accelerator=name_in(ask, "accelerator"),
        argv=tuple(argv),
        environment=environment,
        folder=_folder(folder) if folder else None,
        heartbeat_s=_seconds(ask, "heartbeat_s", HEARTBEAT_S),
        silence_s=_seconds(ask, "silence_s", SILENCE_S),
    )


def _seconds(ask: Message, key: str, default: float) -> float:
    seconds = ask.get(key, default)
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 < seconds < math.inf:
        raise RequestRefusedError(f"{key} must be a number of seconds: {_short(seconds)}")
    return float(seconds)


def _folder(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise RequestRefusedError(f"folder {_short(text)} does not exist here: {error}") from None


def name_in(ask: Message, key: str) -> str:
    """A name that a request must contain.

    Raises:
        RequestRefusedError: it contains none.
    """
    name = ask.get(key)
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise RequestRefusedError(f"{key} must be a name of 1 to {LONGEST_NAME} characters: {_short(name)}")
    return name


def message_in(ask: Message) -> Message:
    """The message that a ``tell`` request relays.

    Raises:
        RequestRefusedError: it has none.
    """
    message = ask.get("message")
    if not isinstance(message, dict):
        raise RequestRefusedError(f"message must be an object: {_short(message)}")
    return message


def orders_in(ask: Message) -> dict[str, Message]:
    """The message for each worker in a ``tell`` request: its part that is common to all, and the worker's own.

    Raises:
        RequestRefusedError: it has none.
    """
    common, orders = message_in(ask), ask.get("orders")
    if not isinstance(orders, dict) or not all(isinstance(own, dict) for own in orders.values()):
        raise RequestRefusedError(f"orders must give an object for each worker: {_short(orders)}")
    return {worker: {**common, **own} for worker, own in orders.items()}


def said_who(ask: Message) -> str | None:
    """The name that a coordinator gives itself; ``None`` if it gives none."""
    who = ask.get("who")
    return who[:LONGEST_NAME] if isinstance(who, str) and who else None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}..."
