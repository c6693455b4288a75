"""The requests that a coordinator may send to an agent, validated before anything is done."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lumctl.training.agent.worker import HEARTBEAT_S, LONGEST_NAME, SILENCE_S
from lumctl.training.wire import Message


class RequestRefusedError(Exception):
    """Nothing was done; the text says why."""


@dataclass(frozen=True, slots=True)
class StartOrder:
    """A worker to be started. Without a ``folder`` it is started in that of the job; ``~`` is the home folder."""

    worker: str
    accelerator: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path | None
    heartbeat_s: float
    silence_s: float


def order_of(ask: Message) -> StartOrder:
    """The worker that ``start`` asks for.

    Raises:
        RequestRefusedError: it is incomplete or invalid.
    """
    argv, environment, folder = ask.get("argv"), ask.get("environment") or {}, ask.get("folder")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        raise RequestRefusedError(f"argv must be a program and its arguments: {_short(argv)}")
    if not isinstance(environment, dict) or not all(isinstance(value, str) for value in environment.values()):
        raise RequestRefusedError(
            "environment must give a text for each variable"
        )  # not shown: there are secrets in it
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
        raise RequestRefusedError(f"folder {_short(text)} is not known here: {error}") from None


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
    """The message that ``tell`` is to relay.

    Raises:
        RequestRefusedError: no message.
    """
    message = ask.get("message")
    if not isinstance(message, dict):
        raise RequestRefusedError(f"message must be an object: {_short(message)}")
    return message


def said_who(ask: Message) -> str | None:
    """The name that a coordinator gives itself; ``None`` if it gives none."""
    who = ask.get("who")
    return who[:LONGEST_NAME] if isinstance(who, str) and who else None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}..."
