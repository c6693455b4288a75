"""``nvidia-smi -q -x`` again and again: only the sections that changed since the last answer are read.

This is a short cut through :mod:`lumctl.fleet.parsers.smi_xml`, which reads whatever is not written as nvidia-smi
writes it, and which alone decides what a broken document tells.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from lumctl.fleet.parsers.smi_sections import Leaves, Section, leaves_in_sections, read_section, section_of
from lumctl.fleet.parsers.smi_xml import MAX_CHARACTERS, begin_of_xml, read_smi_xml

_GPU = re.compile(r'<gpu id="(?P<id>[^"<&\x00-\x1f]*)">(?P<inner>\n[ \t]+)(?=<\w)')
_ENDS = re.compile(r"\s*</nvidia_smi_log>")


@dataclass(frozen=True, slots=True)
class SmiGpu:
    """One ``<gpu>``: its ``id`` and all that is under it."""

    id: str
    leaves: Leaves


@dataclass(frozen=True, slots=True)
class SmiAnswer:
    """A whole answer. ``complete`` is false where it was cut short."""

    gpus: tuple[SmiGpu, ...]
    complete: bool


class SmiCache:
    """The sections of one host's last answer, by the hash of their text: the text itself would be most of the memory.

    A hash of 64 bits, salted by Python, that meets another section's by chance is not to be expected.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[str, Section]] = {}

    def read(self, text: str) -> SmiAnswer:
        """Read as much as there is. What stands before the XML, such as warnings, is skipped."""
        start = begin_of_xml(text)
        known: dict[tuple[int, int], tuple[str, Section]] = {}
        gpus = self._gpus(text[start : start + MAX_CHARACTERS], known) if start >= 0 else None
        if gpus is not None:
            self._known = known
            return SmiAnswer(gpus, complete=True)
        log = read_smi_xml(text)
        return SmiAnswer(tuple(SmiGpu(g.id, leaves_in_sections(g.leaves)) for g in log.gpus), log.complete)

    def _gpus(self, xml: str, known: dict[tuple[int, int], tuple[str, Section]]) -> tuple[SmiGpu, ...] | None:
        """Every GPU of a document that is whole and written as usual, else ``None``."""
        blocks = list(_GPU.finditer(xml))
        if not blocks or not xml.isascii():
            return None
        gpus: list[SmiGpu] = []
        after = blocks[0].start()
        # The head is small and has a grammar of its own; a GPU that is written in an unusual way would lie in it.
        head = read_smi_xml(f"{xml[:after]}</nvidia_smi_log>")
        if not head.complete or head.gpus:
            return None
        for block in blocks:
            line = xml.rfind("\n", 0, block.start())
            ends = f"{xml[line : block.start()]}</gpu>"
            end = xml.find(ends, block.end())
            if line < 0 or end < 0 or not ends.startswith("\n") or xml[min(after, line) : block.start()].strip():
                return None
            after = end + len(ends)
            sections = self._sections(xml[block.end() + 1 : end], f"{block['inner']}<", known)
            if sections is None:
                return None
            gpus.append(SmiGpu(block["id"], Leaves(sections)))
        return tuple(gpus) if _ENDS.match(xml, after) else None

    def _sections(
        self, inside: str, between: str, known: dict[tuple[int, int], tuple[str, Section]]
    ) -> dict[str, Section] | None:
        """The sections of a GPU, which begin and end in lines of one indentation."""
        parts = inside.split(between)
        begins = [number for number, part in enumerate(parts) if not part.startswith("/")]
        found: dict[str, Section] = {}
        for begin, end in pairwise((*begins, len(parts))):
            part = parts[begin] if end == begin + 1 else between.join(parts[begin:end])
            key = (hash(part), len(part))
            section = known.get(key) or self._known.get(key)
            if section is None:
                read = read_section(f"<{part}")
                if read is None:
                    return None
                section = (read[0], section_of(read[1]))
            known[key] = section
            if section[0] in found:
                return None
            found[section[0]] = section[1]
        return found
