"""Parse repeated ``nvidia-smi -q -x``: only the sections that changed since the last answer are parsed again.

This is a shortcut for documents in nvidia-smi's usual layout. The full parser below reads all others, and it alone
decides about broken documents.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from xml.parsers import expat

from lumctl.fleet.parsers.smi_sections import Leaves, SmiSection, leaves_in_sections, read_section, section_of

MAX_CHARACTERS = 16 * 1024 * 1024
_MAX_DEPTH = 32


@dataclass
class XmlGpu:
    """One ``<gpu>``: its ``id`` and every leaf under it, by path. The second sibling of one name is ``name[2]``."""

    id: str
    leaves: dict[str, str] = field(default_factory=dict)


@dataclass
class SmiLog:
    """All GPUs of an answer. ``complete`` is false if it was cut short, or if something in it was refused."""

    gpus: list[XmlGpu] = field(default_factory=list)
    complete: bool = False


def read_smi_xml(text: str) -> SmiLog:
    """Parse as much as there is. Text before the XML, such as warnings, is skipped."""
    start = begin_of_xml(text)
    reader = _Reader()
    if start >= 0:
        reader.read(text[start : start + MAX_CHARACTERS])
    return reader.log


def begin_of_xml(text: str) -> int:
    """The start of the XML in a text; -1 if there is none."""
    start = text.find("<?xml")
    return text.find("<nvidia_smi_log") if start < 0 else start


class _RefusedXmlError(Exception):
    """The XML declares entities or is nested too deeply."""


@dataclass
class _Open:
    """An element that has begun but not ended."""

    path: str
    text: list[str] = field(default_factory=list)
    children: Counter[str] = field(default_factory=Counter)


class _Reader:
    def __init__(self) -> None:
        self.log = SmiLog()
        self._open: list[_Open] = []
        self._gpu: XmlGpu | None = None
        self._gpu_depth = 0

    def read(self, text: str) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._refuse_entity
        try:
            parser.Parse(text.encode("utf-8", "replace"), True)  # noqa: FBT003 - its signature has no names
        except (expat.ExpatError, _RefusedXmlError):
            # Everything read so far is kept; ``complete`` stays false.
            return

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= _MAX_DEPTH:
            raise _RefusedXmlError
        if self._gpu is None:
            if name == "gpu":
                self._gpu = XmlGpu(attributes.get("id", ""))
                self._gpu_depth = len(self._open)
            self._open.append(_Open(""))
            return
        parent = self._open[-1]
        parent.children[name] += 1
        count = parent.children[name]
        label = name if count == 1 else f"{name}[{count}]"
        self._open.append(_Open(f"{parent.path}/{label}" if parent.path else label))

    def _characters(self, text: str) -> None:
        if self._gpu is not None:
            self._open[-1].text.append(text)

    def _end(self, name: str) -> None:
        ended = self._open.pop()
        if self._gpu is not None:
            if len(self._open) == self._gpu_depth:
                self.log.gpus.append(self._gpu)
                self._gpu = None
            elif not ended.children:
                self._gpu.leaves[ended.path] = "".join(ended.text).strip()
        if not self._open:
            self.log.complete = name == "nvidia_smi_log"

    @staticmethod
    def _refuse_entity(*_declaration: object) -> None:
        # A few entities that name each other can expand to gigabytes.
        raise _RefusedXmlError


_GPU = re.compile(r'<gpu id="(?P<id>[^"<&\x00-\x1f]*)">(?P<inner>\n[ \t]+)(?=<\w)')
_ENDS = re.compile(r"\s*</nvidia_smi_log>")


@dataclass(frozen=True, slots=True)
class SmiGpu:
    """One ``<gpu>``: its ``id`` and its leaves by section."""

    id: str
    leaves: Leaves


@dataclass(frozen=True, slots=True)
class SmiAnswer:
    """All GPUs of an answer. ``complete`` is false if it was cut short."""

    gpus: tuple[SmiGpu, ...]
    complete: bool


class SmiCache:
    """The sections of one host's last answer, by the hash of their text. The text itself would take most of the memory.

    The hash has 64 bits and is salted by Python, so two sections are not expected to have the same hash.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[str, SmiSection]] = {}

    def read(self, text: str) -> SmiAnswer:
        """Parse as much as there is. Text before the XML, such as warnings, is skipped."""
        start = begin_of_xml(text)
        known: dict[tuple[int, int], tuple[str, SmiSection]] = {}
        gpus = self._gpus(text[start : start + MAX_CHARACTERS], known) if start >= 0 else None
        if gpus is not None:
            self._known = known
            return SmiAnswer(gpus, complete=True)
        log = read_smi_xml(text)
        return SmiAnswer(tuple(SmiGpu(g.id, leaves_in_sections(g.leaves)) for g in log.gpus), log.complete)

    def _gpus(self, xml: str, known: dict[tuple[int, int], tuple[str, SmiSection]]) -> tuple[SmiGpu, ...] | None:
        """Every GPU of a document that is complete and has the usual layout; ``None`` for any other document."""
        blocks = list(_GPU.finditer(xml))
        if not blocks or not xml.isascii():
            return None
        gpus: list[SmiGpu] = []
        after = blocks[0].start()
        # The head is small and has a different layout, so the full parser reads it. A GPU in an unusual layout would be
        # part of the head.
        head = read_smi_xml(f"{xml[:after]}</nvidia_smi_log>")
        if not head.complete or head.gpus:
            return None
        for block in blocks:
            line = xml.rfind("\n", 0, block.start())
            # The end tag with the indentation of the start tag: tags inside are indented further.
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
        self, inside: str, between: str, known: dict[tuple[int, int], tuple[str, SmiSection]]
    ) -> dict[str, SmiSection] | None:
        """The sections of a GPU. Their first and last lines all have the same indentation."""
        parts = inside.split(between)
        # A part begins where a line has a section's indentation. One that begins with "/" ends the section before it.
        begins = [number for number, part in enumerate(parts) if not part.startswith("/")]
        found: dict[str, SmiSection] = {}
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
            # A second section of this name: only the full parser numbers siblings.
            if section[0] in found:
                return None
            found[section[0]] = section[1]
        return found
