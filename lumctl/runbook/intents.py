"""Runbooks of intents: each step is planned again on the rack where it is executed.

The cells of a swap depend on the rack, its circuits and the usable spares, so cells recorded on one rack are useless on
another. An intent names only the job, the accelerator or the component; the plan is made at the time of use.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest
from lumctl.runbook.parameters import Parameter, parameters_of

PREVIOUS = "previous"
"""Used instead of a run's id: the run of the previous step."""
BEST = "best"
"""Used instead of a spare: the spare that planning finds best."""


class Intends(StrEnum):
    """The actions that a step of intents may have."""

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
    """The value of a key of an intent: ``kind`` is job, accelerators, rack, component, rule, length and so on."""

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
"""The keys of each intent, besides ``do`` and ``title``."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One step of a runbook of intents."""

    id: str
    do: Intends
    data: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The intent in one line."""
        said = ", ".join(f"{key} {value}" for key, value in self.data.items() if key not in {"title", "comment"})
        return str(self.data.get("title") or f"{self.do}: {said}")

    def words(self, key: str) -> list[str]:
        """The names in a value: a list, or a text with commas."""
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
    """A runbook of intents, with its parameters replaced by their values."""

    id: str
    title: str
    rack: str
    parameters: tuple[Parameter, ...]
    intents: tuple[Intent, ...]
    document: Mapping[str, Any]


def parse_intents(document: Mapping[str, Any], written: Mapping[str, Any], name: str) -> IntentRunbook:
    """Parse a document whose parameters are filled in; ``written`` is the same document before that.

    Raises:
        UsageError: a part is missing or invalid; the error names the part.
    """
    steps = document["intents"]
    if not isinstance(steps, list) or not steps:
        raise UsageError(f"{name}: `intents:` must be a list of at least one step")
    for key in ("title", "rack"):
        if not document.get(key):
            raise UsageError(f"{name}: a runbook needs {key!r}, but this one has none")
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
        raise UsageError(f"{name}: step {number} lacks `do`")
    word = str(raw["do"])
    if word not in set(Intends):
        near = nearest(word, [*Intends])
        raise UsageError(
            f"{name}: step {number}: {word!r} is not an intent", hint=f"did you mean {near}?" if near else None
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
