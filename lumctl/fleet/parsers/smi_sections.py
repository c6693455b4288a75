"""One section of a GPU in the XML of ``nvidia-smi -q -x``, such as ``<temperature>``: read once, kept until it changes.

A document of eight GPUs is long, but most of a GPU's text never changes. So sections are cached.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_ERROR = re.compile(r"\[?(?:unknown error|err!)\]?", re.IGNORECASE)
_NEEDS_RESET = re.compile(r"\[?gpu requires reset\]?", re.IGNORECASE)
_LOST = "gpu is lost"
_JUDGED = re.compile(
    r"(?:temperature|ecc_errors|remapped_rows|retired_pages|fabric|(?:gpu_)?power_readings|utilization)\b"
)
"""The places of the values that health uses."""
_TWICE = re.compile(rf"(?:{_JUDGED.pattern}|gpu_recovery_action).*\[[0-9]+\]")
_HOMES = {
    path.rpartition("/")[2]: path
    for path in (
        "gpu_recovery_action",
        "pci/pci_bus_id",
        "temperature/gpu_temp",
        "gpu_reset_status/reset_required",
        "gpu_reset_status/drain_and_reset_recommended",
        "remapped_rows/remapped_row_pending",
        "remapped_rows/remapped_row_failure",
        "remapped_rows/remapped_row_unc",
        "ecc_errors/aggregate/sram_threshold_exceeded",
        "ecc_errors/channel_repair_pending",
        "ecc_errors/tpc_repair_pending",
        "ecc_errors/unrepairable_memory",
        "fabric/state",
        "fabric/health/route_unhealthy",
        "fabric/health/incorrect_configuration",
        # Rows of the text output. They get these names only if the heading above them is missing or damaged.
        "remapped_rows/correctable_error",
        "remapped_rows/uncorrectable_error",
        "remapped_rows/remapping_failure_occurred",
        "remapped_rows/row_remapper_histogram/partial",
        "remapped_rows/row_remapper_histogram/none",
        "retired_pages/single_bit_ecc",
        "retired_pages/double_bit_ecc",
        "retired_pages/pending_page_blacklist",
    )
}
"""The places of some leaves. If such a leaf is in another place or occurs twice, its value cannot be trusted."""
_PROGRAMS = re.compile(r"(?:\w*process\w*)/")
"""The places of program names, which their users choose."""
_ACTIVE_REASON = re.compile(r"clocks_(?:throttle|event)_reason_(\w+)$")

# A leaf, the start or end of an element, or an empty element: nvidia-smi writes nothing else. Entities, attributes,
# comments and control characters need the full parser.
_TOKEN = re.compile(
    r"[ \t\n]*(?:<(?P<leaf>\w+)>(?P<text>[^<&\x00-\x08\x0b-\x1f]*)</(?P=leaf)>|<(?P<begin>\w+)>|</(?P<end>\w+)>"
    r"|<(?P<empty>\w+) ?/>)",
    re.ASCII,
)
_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class SmiSection:
    """The leaves under one child of a ``<gpu>``, by their paths from the ``<gpu>``, and the special ones among them.

    ``unread`` are leaves that health uses but that contain an error or are misplaced. ``lost``: a leaf reports the
    GPU's loss instead of a value. ``needs_reset`` is the path of a leaf that reports the need of a reset instead of a
    value. ``active`` are the active clock event reasons.
    """

    leaves: Mapping[str, str]
    unread: Mapping[str, str] = field(default_factory=dict)
    lost: bool = False
    needs_reset: str | None = None
    active: frozenset[str] = frozenset()


def section_of(leaves: Mapping[str, str]) -> SmiSection:
    """The section with these leaves: find the special ones."""
    unread: dict[str, str] = {}
    lost, needs_reset, active = False, None, list[str]()
    for path, leaf in leaves.items():
        if _HOMES.get(path.rpartition("/")[2], path) != path or ("[" in path and _TWICE.match(path)):
            unread[path] = leaf
        elif leaf == "Active":
            active += _ACTIVE_REASON.findall(path)
        elif leaf and not leaf[0].isdigit() and not _PROGRAMS.match(path):
            if _ERROR.fullmatch(leaf) and _JUDGED.match(path):
                unread[path] = leaf
            lost = lost or _LOST in leaf.lower()
            if needs_reset is None and _NEEDS_RESET.fullmatch(leaf):
                needs_reset = path
    return SmiSection(leaves, unread, lost, needs_reset, frozenset(active))


class Leaves(Mapping[str, str]):
    """The leaves of a GPU by path, stored in its sections."""

    __slots__ = ("_sections",)

    def __init__(self, sections: Mapping[str, SmiSection]) -> None:
        self._sections = sections

    @property
    def sections(self) -> Iterable[SmiSection]:
        """The sections, in the order of the document."""
        return self._sections.values()

    def under(self, name: str) -> Mapping[str, str]:
        """The leaves of one section, by their full paths."""
        section = self._sections.get(name)
        return {} if section is None else section.leaves

    def __getitem__(self, path: str) -> str:
        return self._sections[path.partition("/")[0]].leaves[path]

    def __iter__(self) -> Iterator[str]:
        for section in self._sections.values():
            yield from section.leaves

    def __len__(self) -> int:
        return sum(len(section.leaves) for section in self._sections.values())


def leaves_in_sections(leaves: Mapping[str, str]) -> Leaves:
    """A GPU's leaves, grouped by section."""
    parts: dict[str, dict[str, str]] = defaultdict(dict)
    for path, leaf in leaves.items():
        parts[path.partition("/")[0]][path] = leaf
    return Leaves({name: section_of(part) for name, part in parts.items()})


def read_section(text: str) -> tuple[str, dict[str, str]] | None:
    """The name and the leaves of one whole element; ``None`` if it needs the full parser."""
    leaves: dict[str, str] = {}
    siblings: dict[str, int] = {}
    around: list[tuple[str, str, str]] = []
    prefix, bare, at = "", False, 0
    for token in _TOKEN.finditer(text):
        if token.start() != at or (at and not around):
            return None
        at = token.end()
        leaf, value, begin, end, empty = token.groups()
        if end is not None:
            if not around:
                return None
            name, prefix, path = around.pop()
            if name != end:
                return None
            # Nothing came between the start and the end, so it is a leaf without text.
            if bare:
                leaves[path] = ""
            bare = False
            continue
        path = prefix + (leaf or begin or empty)
        siblings[path] = count = siblings.get(path, 0) + 1
        if count > 1:
            path = f"{path}[{count}]"
        bare = begin is not None
        if begin is None:
            leaves[path] = value.strip() if leaf is not None else ""
        elif len(around) >= _MAX_DEPTH:
            return None
        else:
            around.append((begin, prefix, path))
            prefix = f"{path}/"
    # XML allows the end of a CDATA section nowhere else.
    whole = leaves and not around and not text[at:].strip() and "]]>" not in text
    return (next(iter(leaves)).partition("/")[0], leaves) if whole else None
