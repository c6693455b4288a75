"""The XML of ``nvidia-smi -q -x``, read safely into leaves by path.

An event parser and not a tree: an answer cut short still gives the GPUs it told in full (of the one in which it ends,
what is bad may just not have been said yet), and a hostile one (a host is not trusted with our memory) meets limits on
size and depth and may not declare entities.
"""

from collections import Counter
from dataclasses import dataclass, field
from xml.parsers import expat

MAX_CHARACTERS = 16 * 1024 * 1024
_MAX_DEPTH = 32


@dataclass
class SmiGpu:
    """One ``<gpu>``: its ``id`` and every leaf under it, by path. The second of two siblings alike is ``name[2]``."""

    id: str
    leaves: dict[str, str] = field(default_factory=dict)


@dataclass
class SmiLog:
    """A whole answer. ``complete`` is false where it was cut short or broken off by what was refused."""

    gpus: list[SmiGpu] = field(default_factory=list)
    complete: bool = False


def read_smi_xml(text: str) -> SmiLog:
    """Read as much as there is. What stands before the XML, such as warnings, is skipped."""
    start = begin_of_xml(text)
    reader = _Reader()
    if start >= 0:
        reader.read(text[start : start + MAX_CHARACTERS])
    return reader.log


def begin_of_xml(text: str) -> int:
    """Where the XML begins in a text; -1 where there is none."""
    start = text.find("<?xml")
    return text.find("<nvidia_smi_log") if start < 0 else start


class _RefusedXmlError(Exception):
    """Entities or absurd nesting."""


@dataclass
class _Open:
    """An element that has begun and not ended."""

    path: str
    text: list[str] = field(default_factory=list)
    children: Counter[str] = field(default_factory=Counter)


class _Reader:
    def __init__(self) -> None:
        self.log = SmiLog()
        self._open: list[_Open] = []
        self._gpu: SmiGpu | None = None
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
            # Whatever was read before this stays; ``complete`` tells.
            return

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= _MAX_DEPTH:
            raise _RefusedXmlError
        if self._gpu is None:
            if name == "gpu":
                self._gpu = SmiGpu(attributes.get("id", ""))
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
        raise _RefusedXmlError
