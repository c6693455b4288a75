"""The shared state of resolving one inventory: its problems, the names defined so far, folding and references."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lumctl.inventory.document_reader import Doubts
from lumctl.inventory.entry import Entry
from lumctl.inventory.folded_names import NAME, FoldError, expand
from lumctl.inventory.problems import Mark, Problems

if TYPE_CHECKING:
    from lumctl.inventory.geometry import MeshData
    from lumctl.inventory.model import Accelerator, Device, Host, Job, Rack, Transponder

T = TypeVar("T")

_MOST = 1_000_000
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class Scope:
    """The inventory under construction. A method that returns ``None`` has reported the reason."""

    def __init__(self, folder: Path, problems: Problems, doubts: Doubts) -> None:
        self.problems = problems
        self.doubts = doubts
        self.racks: dict[str, Rack] = {}
        self.hosts: dict[str, Host] = {}
        self.accelerators: dict[str, Accelerator] = {}
        self.devices: dict[str, Device] = {}
        self.transponders: dict[str, Transponder] = {}
        self.jobs: dict[str, Job] = {}
        self.fillers: dict[str, Job] = {}
        self.meshes: dict[Path, MeshData | None] = {}
        """The meshes read from mesh files, by path; ``None`` for a file with errors."""
        self.contents: list[bytes] = []
        """The contents of the mesh files, in the order of reading."""
        self.ties: dict[str, list[tuple[str, str, Mark]]] = {}
        """Accelerators by the name of their tied group, each with its host and its place in the file."""
        self._folder = folder
        self._names: dict[str, tuple[str, Mark]] = {}
        self._said: set[tuple[str, Mark]] = set()
        self._taken: dict[str, str] = {}
        self._spent = 0

    def once(self, topic: str, mark: Mark, message: str, hint: str | None = None) -> None:
        """Report a problem, but only the first of its topic at one place, because a folded name may have thousands."""
        if (topic, mark) not in self._said:
            self._said.add((topic, mark))
            self.problems.add(mark, message, hint)

    def is_name(self, name: str, mark: Mark) -> bool:
        """Whether a text can be a name. Files and sockets are named after it, and commands take it as a word."""
        if NAME.fullmatch(name):
            return True
        self.once("name", mark, f"{name!r} cannot be a name, expected letters, digits, '-', '_' and '.'")
        return False

    def define(self, kind: str, name: str, mark: Mark) -> bool:
        """Define a name. Components share one namespace, because commands identify a component by its name alone."""
        if not self.is_name(name, mark):
            return False
        if name in self._names:
            other, first = self._names[name]
            self.once("twice", mark, f"{kind} {name!r} is defined twice, first as {other} in line {first.line}")
            return False
        self._names[name] = (kind, mark)
        return True

    def take(self, what: str, user: str, mark: Mark) -> bool:
        """Note that ``user`` uses something that only one user may use; return whether it is the only one."""
        other = self._taken.setdefault(what, user)
        if other != user:
            self.once("taken", mark, f"{what} is used twice, by {other} and by {user}")
        return other == user

    def refer(self, kind: str, name: str, known: Mapping[str, T], mark: Mark) -> T | None:
        """The component that a name refers to. For a name that is in doubt it is ``None``, without a report."""
        if name in known:
            return known[name]
        if name not in self.doubts.names and (kind, mark) not in self._said:
            self._said.add((kind, mark))
            self.problems.unknown(mark, kind, name, known)
        return None

    def expand(self, text: str, mark: Mark) -> list[str] | None:
        """All names that a folded text expands to."""
        try:
            names = expand(text)
        except FoldError as error:
            self.problems.add(mark, str(error))
            return None
        return names if self.spend(len(names)) else None

    def spend(self, count: int) -> bool:
        """Count expanded names and ranks; ``False`` if the file has too many. A short text can expand to very many."""
        self._spent += count
        if self._spent > _MOST:
            self.once("size", Mark(1, 1), f"the folded names expand to more than {_MOST} names and ranks in total")
        return self._spent <= _MOST

    def texts(self, entry: Entry, key: str, names: Sequence[str]) -> list[str] | None:
        """The value of ``key`` for each of ``names``: folded, one for each or one for all."""
        value: str | list[str] = getattr(entry, key)
        expanded: list[str] = []
        for item in [value] if isinstance(value, str) else value:
            found = self.expand(item, entry.mark(key))
            if found is None:
                return None
            expanded += found
        return self._zip(entry, key, expanded, len(names))

    def numbers(self, entry: Entry, key: str, names: Sequence[str]) -> list[int] | None:
        """The number under ``key`` for each of ``names``: one for each or one for all."""
        value: int | list[int] = getattr(entry, key)
        return self._zip(entry, key, [value] if isinstance(value, int) else value, len(names))

    def _zip(self, entry: Entry, key: str, values: list[T], count: int) -> list[T] | None:
        if len(values) == count:
            return values
        if len(values) == 1:
            return values * count
        expected = f"{count} (one for each name) or one for all" if count > 1 else "one, as there is one name"
        self.problems.add(entry.mark(key), f"found {len(values)} values of {key!r}, expected {expected}")
        return None

    def racks_of(self, entry: Entry, names: Sequence[str]) -> list[str]:
        """The rack of each of ``names``; an empty text if it is unknown."""
        if getattr(entry, "rack") is None:  # noqa: B009 - hosts and devices have it, other entries do not
            if len(self.racks) == 1:
                return list(self.racks) * len(names)
            if not entry.cut("rack"):
                self.problems.add(entry.at, "key 'rack' is missing here: the file has several racks")
            return [""] * len(names)
        racks = self.texts(entry, "rack", names) or [""] * len(names)
        known = {rack: self.refer("rack", rack, self.racks, entry.mark("rack")) for rack in racks if rack}
        return [rack if known.get(rack) else "" for rack in racks]

    def fill(self, text: str, mark: Mark, name: str, value: str) -> str | None:
        """A text with the placeholder ``{name}`` replaced. It may contain no other placeholder."""
        for other in _PLACEHOLDER.findall(text):
            if other != name:
                self.once("placeholder", mark, f"found '{{{other}}}', expected '{{{name}}}'")
                return None
        return text.replace(f"{{{name}}}", value)

    def path(self, text: str, mark: Mark) -> Path:
        """The path that a text names: ``~`` is a home folder; other paths are relative to the inventory's folder."""
        try:
            return self._folder / Path(text).expanduser()
        except RuntimeError:
            self.problems.add(mark, f"found {text!r}, whose home folder is unknown")
            return Path(text)
