"""One configurable leaf of OpenConfig's models: how to write it, where to read it, and how to compare its values."""

from collections.abc import Callable
from dataclasses import dataclass
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

NAMES = {
    "p": "http://openconfig.net/yang/platform",
    "x": "http://openconfig.net/yang/platform/transceiver",
    "t": "http://openconfig.net/yang/terminal-device",
}
"""Namespaces. Unlike the contents of the modules, they have not changed since the first revisions of 2016."""

_HUNDREDTH = 0.01


@dataclass(frozen=True, slots=True)
class PathStep:
    """One element of a path; in a list, the entry whose ``key`` has the given ``value``."""

    prefix: str
    name: str
    key: str = ""
    value: str = ""

    def around(self, content: str) -> str:
        """The element with its key and ``content``, as XML."""
        key = f"<{self.key}>{escape(self.value)}</{self.key}>" if self.key else ""
        return f'<{self.name} xmlns="{NAMES[self.prefix]}">{key}{content}</{self.name}>'

    def within(self, parent: Element) -> Element | None:
        """Find the element below ``parent``."""
        for found in parent.iterfind(f"{self.prefix}:{self.name}", NAMES):
            if not self.key or text_at(found, f"{self.prefix}:{self.key}") == self.value:
                return found
        return None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf in a ``config`` container; the ``state`` container next to it also has it, if the device shows it there.

    ``same`` tells whether two texts mean the same value.
    """

    steps: tuple[PathStep, ...]
    name: str
    same: Callable[[str, str], bool]

    def edit(self, value: str) -> str:
        """The XML that sets the leaf. It writes keys into ``config`` too: list keys in these models refer to it."""
        *above, last = self.steps
        text = last.around(f"<config>{_key_of(last)}<{self.name}>{escape(value)}</{self.name}></config>")
        for step in reversed(above):
            text = step.around((f"<config>{_key_of(step)}</config>" if step.key else "") + text)
        return text

    def asked(self, container: str) -> str:
        """The subtree filter that selects the leaf, in ``config`` or in ``state``."""
        text = f"<{container}><{self.name}/></{container}>"
        for step in reversed(self.steps):
            text = step.around(text)
        return text

    def read(self, data: Element, container: str) -> str | None:
        """The text of the leaf in a reply; ``None`` if the leaf is absent."""
        at: Element | None = data
        for step in self.steps:
            at = step.within(at) if at is not None else None
        prefix = self.steps[-1].prefix
        return text_at(at, f"{prefix}:{container}/{prefix}:{self.name}") if at is not None else None


def component(name: str) -> tuple[PathStep, PathStep]:
    """The path to a component of the chassis."""
    return PathStep("p", "components"), PathStep("p", "component", "name", name)


def text_at(element: Element, path: str) -> str | None:
    """The text at a path; ``None`` if there is none."""
    text = element.findtext(path, namespaces=NAMES)
    return (text.strip() or None) if text is not None else None


def same_word(one: str, other: str) -> bool:
    """Whether two words are the same; prefixes are ignored."""
    return one.rpartition(":")[2] == other.rpartition(":")[2]


def same_whole(one: str, other: str) -> bool:
    """Whether two texts are the same whole number; false if one is not a whole number."""
    try:
        return int(one) == int(other)
    except ValueError:
        return False


def same_hundredth(one: str, other: str) -> bool:
    """Whether two texts are numbers that agree to the hundredth; false if one is not a number."""
    try:
        return abs(float(one) - float(other)) < _HUNDREDTH / 2
    except ValueError:
        return False


def _key_of(step: PathStep) -> str:
    return f"<{step.key}>{escape(step.value)}</{step.key}>" if step.key else ""
