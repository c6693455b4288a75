"""What goes out to receivers: a document for programs, with one line for people in it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lumctl.daemon.notification import SCHEMA, Notification, document_of
from lumctl.printable import printable_values


@dataclass(frozen=True, slots=True)
class Letter:
    """One message. ``id`` is the same for the same news; ``about`` is the case that it tells of, if it is one."""

    id: str
    document: Mapping[str, Any] = field(repr=False)
    about: Notification | None = None

    @property
    def body(self) -> bytes:
        """The document as bytes."""
        return json.dumps(self.document, ensure_ascii=False).encode()


def of_case(notification: Notification) -> Letter:
    """What a receiver is told of a case."""
    return Letter(notification.id, printable_values(document_of(notification)), notification)


def of_autopilot(occasion: str, text: str, data: Mapping[str, Any], *, target: str, at: float) -> Letter:
    """What a receiver is told of the autopilot: ``data`` says more, and has ``rack`` where it is about one."""
    rack = str(data.get("rack", ""))
    name = f"autopilot:{rack}:{occasion}:{at:.3f}"
    told = {"schema": SCHEMA, "id": name, "occasion": occasion, "text": text, "at": at, "target": target, "rack": rack}
    return Letter(name, printable_values({**told, "autopilot": dict(data)}))
