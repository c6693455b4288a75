"""Runbooks of intents: each step is planned again on the rack where it is done.

The cells of a swap depend on the rack, its circuits and the usable spares: cells recorded on one rack are useless on
another. An intent names the job, the accelerator, the component; the plan is made at the time of use.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest
from lumctl.runbook.parameters import Parameter, parameters_of

PREVIOUS = "previous"
"""In place of a run's id: the run of the step before."""
BEST = "best"
"""In place of a spare: the one that planning finds best."""


class Intends(StrEnum):
    """What a step intends."""

    SWAP = "swap"
    SWAP_BACK = "swap-back"
    REROUTE = "reroute"
    ROLLBACK = "rollback"
    FABRIC_APPLY = "fabric-apply"
    DEVICE_SET = "device-set"
    ACK = "ack"
    UNACK = "unack"
    MAINTAIN = "maintain"
    MAINTAIN_END = "maintain-end"


@dataclass(frozen=True, slots=True)
class Field:
    """What a key of an intent holds: ``kind`` is job, accelerators, rack, component, rule, length and so on."""

    kind: str
    required: bool = True


FIELDS: Mapping[Intends, Mapping[str, Field]] = {
    Intends.SWAP: {
        "failed": Field("accelerators"),
        "job": Field("job", required=False),
        "spare": Field("spares", required=False),
        "avoid": Field("settables", required=False),
        "even_if_healthy": Field("flag", required=False),
    },
    Intends.SWAP_BACK: {"job": Field("job")},
    Intends.REROUTE: {"avoid": Field("settables"), "job": Field("job", required=False)},
    Intends.ROLLBACK: {"run": Field("run")},
    Intends.FABRIC_APPLY: {
        "rack": Field("rack", required=False),
        "rewrite": Field("flag", required=False),
        "as_written": Field("flag", required=False),
    },
    Intends.DEVICE_SET: {
        "component": Field("settable"),
        "settings": Field("settings"),
        "even_if_used": Field("flag", required=False),
    },
    Intends.ACK: {
        "component": Field("component"),
        "comment": Field("text"),
        "rule": Field("rule", required=False),
        "for": Field("length", required=False),
    },
    Intends.UNACK: {"component": Field("component"), "rule": Field("rule", required=False)},
    Intends.MAINTAIN: {"component": Field("component"), "comment": Field("text"), "for": Field("length")},
    Intends.MAINTAIN_END: {"component": Field("component")},
}
"""The keys of each intent, beside ``do`` and ``title``."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One step of such a runbook."""

    id: str
    do: Intends
    data: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The intent in one line."""
        said = ", ".join(f"{key} {value}" for key, value in self.data.items() if key not in {"title", "comment"})
        return str(self.data.get("title") or f"{self.do}: {said}")

    def words(self, key: str) -> list[str]:
        """A value that may be several names: a list, or a text with commas."""
        value = self.data.get(key)
        if value is None or value == BEST:
            return []
        parts = value if isinstance(value, list) else str(value).split(",")
        return [str(part).strip() for part in parts if str(part).strip()]

    def flag(self, key: str) -> bool:
        """A boolean value; false by default."""
        return bool(self.data.get(key, False))


@dataclass(frozen=True, slots=True)
class IntentRunbook:
    """A runbook of intents, with the values of its parameters in their places."""

    id: str
    title: str
    rack: str
    parameters: tuple[Parameter, ...]
    intents: tuple[Intent, ...]
    document: Mapping[str, Any]


def parse_intents(document: Mapping[str, Any], written: Mapping[str, Any], name: str) -> IntentRunbook:
    """A document with its parameters filled in as values; ``written`` is the one in which they are not.

    Raises:
        UsageError: a part of it is missing or is not what it must be; it names the part.
    """
    steps = document["intents"]
    if not isinstance(steps, list) or not steps:
        raise UsageError(f"{name}: `intents:` is a list of steps, and has one at least")
    for key in ("title", "rack"):
        if not document.get(key):
            raise UsageError(f"{name}: a runbook needs {key!r}, and this has none")
    return IntentRunbook(
        id=str(document.get("id") or name),
        title=str(document["title"]),
        rack=str(document["rack"]),
        parameters=parameters_of(written, name),
        intents=tuple(_intent(step, number, name) for number, step in enumerate(steps, start=1)),
        document=written,
    )


def _intent(raw: Any, number: int, name: str) -> Intent:
    if not isinstance(raw, Mapping) or "do" not in raw:
        raise UsageError(f"{name}: step {number} does not say what to `do`")
    word = str(raw["do"])
    if word not in set(Intends):
        near = nearest(word, [*Intends])
        raise UsageError(
            f"{name}: step {number}: {word!r} is no intent", hint=f"did you mean {near}?" if near else None
        )
    do = Intends(word)
    fields = FIELDS[do]
    data = {str(key): value for key, value in raw.items() if key != "do"}
    missing = [key for key, field in fields.items() if field.required and data.get(key) in (None, "", [], {})]
    if missing:
        raise UsageError(f"{name}: step {number} ({do}) needs {', '.join(missing)}")
    for key in data:
        if key not in fields and key != "title":
            near = nearest(key, fields)
            raise UsageError(
                f"{name}: step {number} ({do}) has no {key!r}", hint=f"did you mean {near}?" if near else None
            )
    return Intent(str(number), do, data)
