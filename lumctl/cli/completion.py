"""Shell completion: ``lumctl __complete WORD...`` prints the values that the last word can become.

A shell waits for the answer after every TAB, so this module imports neither Typer nor pydantic nor SQLAlchemy. Commands
and options come from ``completion.json``, which ``make man`` writes. Ids of the inventory come from a cache, which the
first TAB after a change of the inventory renews; ids of runs and plans come from the racks' SQLite files.
"""

import hashlib
import json
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from lumctl.cli.nouns import NOUNS

FILES = ":files"
"""Printed instead of values: the shell then completes file names."""
MOST_RUNS = 200
_COMMANDS = Path(__file__).with_name("completion.json")
_FILES = frozenset({"FILE", "DIR", "FOLDER", "PATH", "SOCKET"})
_COMPONENTS = frozenset({"COMPONENT", "COMPONENT:RULE"})
_KINDS = {
    "HOST": ("host",),
    "ACCELERATOR": ("accelerator",),
    "ACC": ("accelerator",),
    "ACC|HOST": ("accelerator", "host"),
}
_IDS = {"RACK": "racks", "JOB": "jobs"}
_WORDS = {"RULE": "rules", "KIND": "faults", "FORMAT": "formats"}
_QUERIES = {
    "RUN": """SELECT id, state || ': ' || title FROM runs WHERE rack = :rack
        AND (NOT :unfinished OR state IN ('running', 'half-done'))
        AND (NOT :reversible OR state IN ('running', 'half-done', 'done'))
        AND (NOT :reversible OR kind NOT IN ('ack', 'maintain', 'policy', 'adopt'))
        ORDER BY started_at DESC LIMIT :most""",
    "PLAN": """SELECT id, body ->> '$.title' FROM plans WHERE rack = :rack
        AND (NOT :unapplied OR digest NOT IN (SELECT plan_digest FROM runs WHERE rack = :rack))
        AND (NOT :slice OR body ->> '$.kind' = 'slice')
        AND (NOT :phases OR body ->> '$.phases' IS NOT NULL)
        ORDER BY created_at DESC LIMIT :most""",
}
"""Ids of stored runs and plans, newest first, with their titles; only those for which the conditions hold."""
_CONDITIONS = ("unfinished", "reversible", "unapplied", "slice", "phases")
_FITTING: dict[tuple[str, ...], set[str]] = {
    ("swap", "apply"): {"unapplied"},
    ("swap", "approve"): {"unapplied"},
    ("slice", "apply"): {"unapplied", "slice"},
    ("job", "phases"): {"phases"},
    ("swap", "rollback"): {"reversible"},
    ("slice", "rollback"): {"reversible"},
    ("swap", "resume"): {"unfinished"},
    ("swap", "abort"): {"unfinished"},
}
"""The conditions, by noun and verb: without them the command would certainly refuse a run or a plan."""
_CACHED = frozenset({"changed", "components", "racks", "jobs", "stores"})
"""The keys of a cache file."""
Value = tuple[str, str]
"""A word and its description."""


def complete(words: Sequence[str]) -> None:
    """Print one value per line for the last of the words after ``lumctl``, with its description after a tab.

    It never fails and never prints a message, because a message would appear in the prompt.
    """
    with suppress(Exception):
        for value, about in values(words):
            sys.stdout.write(f"{value}\t{about}\n" if about else f"{value}\n")


def values(words: Sequence[str]) -> list[Value]:
    """The values that the last word can become, with their descriptions; see :func:`complete`."""
    *before, typed = words or ("",)
    commands = json.loads(_COMMANDS.read_text(encoding="utf-8"))
    line = _Line(commands, before)
    if line.pending is not None:
        return _starting(line.values_of(line.pending), typed)
    if typed.startswith("-"):
        return _starting(((name, option["help"]) for name, option in line.options.items()), typed)
    if line.verbs is not None:
        return _starting(line.verbs.items(), typed)
    return _starting(line.values_of(line.argument), typed) if line.argument else []


class _Line:
    """A command line up to the word that is being typed."""

    def __init__(self, commands: dict[str, Any], words: Sequence[str]) -> None:
        self._commands = commands
        self._given: dict[str, str] = {}
        self.options: dict[str, Any] = commands["options"]
        self.verbs: dict[str, str] | None = {
            **{name: noun.help for name, noun in NOUNS.items()},
            "help": "Help for a command.",
            "version": "The version.",
        }
        """Help texts by noun or verb, if one of these comes next; else ``None``."""
        self._option = ""
        self.pending: str | None = None
        """The metavar of the last option's value, if that value comes next; else ``None``."""
        self._arguments: list[str] = []
        self._noun: dict[str, Any] | None = None
        self._command: tuple[str, ...] = ()
        """The noun, and then the verb."""
        for word in words:
            self._take(word)

    @property
    def argument(self) -> str | None:
        """The metavar of the next argument; one that ends with ``...`` may be repeated."""
        return self._arguments[0] if self._arguments else None

    def _take(self, word: str) -> None:
        if self.pending is not None:
            self.pending = None
            self._given[self._option] = word
        elif word.startswith("-"):
            self._option, _, value = word.partition("=")
            takes = self.options.get(self._option, {}).get("takes")
            self._given[self._option] = value
            self.pending = takes if takes and not value else None
        elif word == "help" and self._noun is None and self.verbs is not None:
            pass  # the next word is a noun
        elif self.verbs is not None:
            self._choose(word)
        elif self._arguments and not self._arguments[0].endswith("..."):
            del self._arguments[0]

    def _choose(self, word: str) -> None:
        self._command = (*self._command, word)
        chosen = self._commands["nouns"].get(word, {}) if self._noun is None else self._noun["verbs"].get(word, {})
        if self._noun is None and "verbs" in chosen:
            self._noun = chosen
            self.verbs = {name: verb["help"] for name, verb in chosen["verbs"].items()}
            return
        self.verbs = None
        self.options = {**self._commands["options"], **chosen.get("options", {})}
        self._arguments = list(chosen.get("arguments", ()))

    def values_of(self, metavar: str) -> Iterable[Value]:
        """The values of an option or an argument, by its name in the help, such as ``[COMPONENT]`` or ``rack|sim``."""
        # ``ACC|HOST[,...]`` is completed like ``ACC|HOST``: see _starting() for lists.
        kind = metavar.strip("[]").removesuffix("...").split("[")[0]
        if kind in _FILES:
            found: Iterable[Value] = [(FILES, "")]
        elif kind in {"RUN", "PLAN"}:
            found = self._stored(kind)
        elif kind == "RUNBOOK":  # a run's id, or a file
            found = [*self._stored("RUN"), (FILES, "")]
        elif kind in _KINDS:
            found = [(name, of) for name, of in self._names()["components"].items() if of in _KINDS[kind]]
        elif kind in _COMPONENTS:
            found = self._names()["components"].items()
        elif kind in _IDS:
            found = [(name, "") for name in self._names()[_IDS[kind]]]
        elif kind in _WORDS:
            found = [(name, "") for name in self._commands[_WORDS[kind]]]
        else:
            choices = kind.split("|") if kind.islower() else []
            found = [(choice, "") for choice in choices if len(choices) > 1]
        return found

    def _stored(self, kind: str) -> Iterator[Value]:
        """Ids of runs or plans that fit the command, newest first, with their titles."""
        target = self._given.get("--target") or os.environ.get("LUMCTL_TARGET") or "rack"
        fitting = _FITTING.get(self._command, set())
        asked = {"most": MOST_RUNS, **{condition: condition in fitting for condition in _CONDITIONS}}
        for rack, file in self._names()["stores"].get(target, {}).items():
            # Read only: SQLite would otherwise create an empty database where a rack has no store yet.
            with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
                yield from ((row[0], row[1] or "") for row in database.execute(_QUERIES[kind], {**asked, "rack": rack}))

    def _names(self) -> dict[str, Any]:
        return names(self._given.get("-i") or self._given.get("--inventory"))


def _starting(found: Iterable[Value], typed: str) -> list[Value]:
    """The values that begin with the typed text; if none does, file names where files are allowed.

    In a comma-separated list, the last item is completed.
    """
    listed, comma, last = typed.rpartition(",")
    found = list(found)
    matches = [(f"{listed}{comma}{value}", _plain(about)) for value, about in found if value.startswith(last)]
    files = (FILES, "")
    # File names only if no value fits: the shell cannot offer both.
    return [each for each in matches if each[0] != FILES] or ([files] if files in found else matches)


def _plain(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() else "?" for sign in text).split())


def names(named: str | None) -> dict[str, Any]:
    """Ids of the inventory and the files of its racks' stores; from the cache if the inventory has not changed since.

    Raises:
        LumctlError: there is no inventory, or it has errors.
    """
    path = _usual_inventory(named)
    place = None if path is None else _cache_of(path)
    if path is not None and place is not None:
        with suppress(OSError, ValueError):
            kept = json.loads(place.read_text(encoding="utf-8"))
            # Another version of lumctl may have written other keys, and anything else may stand there.
            if isinstance(kept, dict) and kept.keys() == _CACHED and kept["changed"] == _changed(path):
                return kept
    return _read(named)


def _usual_inventory(named: str | None) -> Path | None:
    """The inventory's file, looked up quickly; :func:`lumctl.inventory.load.find_inventory` decides in other cases."""
    if path := named or os.environ.get("LUMCTL_INVENTORY"):
        return Path(path).expanduser()
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    usual = (Path("lumctl.yaml"), settings / "lumctl" / "inventory.yaml")
    return next((path for path in usual if path.is_file()), None)


def _cache_of(path: Path) -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lumctl"
    # These variables decide where the stores are, and the cache names the stores' files.
    places = [str(path.absolute()), *(os.environ.get(name, "") for name in ("LUMCTL_STATE", "XDG_STATE_HOME", "HOME"))]
    return folder / f"names-{hashlib.sha256(json.dumps(places).encode()).hexdigest()[:16]}.json"


def _changed(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_mtime_ns, status.st_size]


def _read(named: str | None) -> dict[str, Any]:
    """Read the inventory itself, and cache its names for the next TAB."""
    # Imported only here: these are slow, and only the first TAB after a change of the inventory needs them.
    from lumctl.files import make_private, write_whole
    from lumctl.inventory.load import find_inventory, load_inventory
    from lumctl.store import place_of
    from lumctl.store.sqlite import FILE_NAME

    path = find_inventory(named)
    # First its time: if the file is edited while it is read, the next TAB reads it again.
    changed, inventory = _changed(path), load_inventory(path)
    kinds: tuple[tuple[str, Iterable[str]], ...] = (
        ("host", inventory.hosts),
        ("accelerator", inventory.accelerators),
        ("transponder", inventory.transponders),
        ("device", inventory.devices),
    )
    places = {
        target: {rack: place_of(inventory, rack, target) for rack in inventory.racks} for target in ("rack", "sim")
    }
    found = {
        "changed": changed,
        "components": {name: kind for kind, ids in kinds for name in ids},
        "racks": sorted(inventory.racks),
        "jobs": sorted(inventory.jobs),
        "stores": {
            target: {
                rack: str(Path(place).expanduser() / FILE_NAME) for rack, place in of.items() if "://" not in place
            }
            for target, of in places.items()
        },
    }
    cache = _cache_of(path)
    with suppress(OSError):
        make_private(cache.parent)
        write_whole(cache, json.dumps(found))
    return found
