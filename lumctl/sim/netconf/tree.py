"""Trees of configuration and state: identity of elements, joining of trees, and subtree filters."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Protocol
from xml.etree.ElementTree import Element, SubElement

BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
NC = f"{{{BASE}}}"
_PROTOCOL_TAGS = frozenset({"lock-denied", "missing-attribute", "bad-attribute", "unknown-attribute", "in-use"})


class RpcError(Exception):
    """An ``rpc-error``. ``info`` are elements of its error-info, such as the session that holds a lock."""

    def __init__(self, tag: str, message: str, *, path: str = "", info: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.tag = tag
        self.message = message
        self.path = path
        self.info = info

    def element(self) -> Element:
        """The error as an element of a reply."""
        error = Element(f"{NC}rpc-error")
        told = {
            "error-type": "protocol" if self.tag in _PROTOCOL_TAGS else "application",
            "error-tag": self.tag,
            "error-severity": "error",
            "error-path": self.path,
            "error-message": self.message,
        }
        for name, text in told.items():
            if text:
                SubElement(error, f"{NC}{name}").text = text
        if self.info:
            info = SubElement(error, f"{NC}error-info")
            for name, text in self.info:
                SubElement(info, f"{NC}{name}").text = text
        return error


Keys = Mapping[str, tuple[str, ...]]
"""The keys of each list, as full names ``{namespace}name``; a leaf-list has none."""
Identity = tuple[str, ...]


def identity(element: Element, keys: Keys, path: str = "") -> Identity:
    """The identity of an element among its siblings: its name, and in a list its keys.

    Raises:
        RpcError: a key is missing.
    """
    names = keys.get(element.tag)
    if names is None:
        return (element.tag,)
    if not names:
        return (element.tag, element.text or "")
    values = [element.findtext(name) for name in names]
    if None in values:
        missing = local(names[values.index(None)])
        raise RpcError(
            "missing-element",
            f"a {local(element.tag)} needs its {missing}",
            path=path,
            info=(("bad-element", missing),),
        )
    return (element.tag, *(value.strip() for value in values if value is not None))


def local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]


def step(element: Element, keys: Keys) -> str:
    """An element as a step of a path: ``/component[name='och-1']``."""
    names = keys.get(element.tag, ())
    conditions = "".join(f"[{local(name)}='{(element.findtext(name) or '').strip()}']" for name in names)
    return f"/{local(element.tag)}{conditions}"


def children_by_identity(parent: Element, keys: Keys) -> dict[Identity, Element]:
    """An element's children."""
    return {identity(child, keys): child for child in parent}


def counterpart(parent: Element, element: Element, keys: Keys) -> Element | None:
    """The child of ``parent`` with the same identity as ``element``."""
    wanted = identity(element, keys)
    return next((child for child in parent if child.tag == element.tag and identity(child, keys) == wanted), None)


def join(into: Element, more: Element, keys: Keys) -> None:
    """Add all elements of another tree to a tree; both have the same root."""
    here = children_by_identity(into, keys)
    for child in more:
        found = here.get(identity(child, keys))
        if found is None:
            into.append(deepcopy(child))
        elif len(child):
            join(found, child, keys)
        else:
            found.text = child.text


def shell(element: Element, keys: Keys) -> Element:
    """A copy of an element with only its keys."""
    made = Element(element.tag)
    for name in keys.get(element.tag, ()):
        SubElement(made, name).text = element.findtext(name)
    return made


def trimmed(element: Element) -> Element:
    """Remove from a tree the white space that is only layout."""
    for each in element.iter():
        each.tail = None
        each.text = None if len(each) else (each.text or "").strip() or None
    return element


def selected(root: Element, chosen: Element, keys: Keys) -> Element:
    """The elements of a tree that a subtree filter (RFC 6241, section 6) selects; list entries keep their keys."""
    whole: set[Element] = set()
    partly: set[Element] = set()
    for wanted in chosen:
        for child in _named(root, wanted.tag):
            _mark(child, wanted, whole, partly)
    made = Element(root.tag)
    _copy(root, made, whole, partly, keys)
    return made


def _mark(element: Element, wanted: Element, whole: set[Element], partly: set[Element]) -> bool:
    if not len(wanted):
        whole.add(element)
        return True
    conditions = [each for each in wanted if not len(each) and (each.text or "").strip()]
    met: list[Element] = []
    for condition in conditions:
        same = [e for e in _named(element, condition.tag) if (e.text or "").strip() == (condition.text or "").strip()]
        if not same:
            return False
        met += same
    rest = [each for each in wanted if each not in conditions]
    if not rest:
        whole.add(element)
        return True
    found = [_mark(child, each, whole, partly) for each in rest for child in _named(element, each.tag)]
    # An entry that meets the conditions is selected even if it has nothing else that is asked for.
    if not any(found) and not conditions:
        return False
    whole.update(met)
    partly.add(element)
    return True


def _named(parent: Element, name: str) -> Iterator[Element]:
    """The children with a name; a name without a namespace matches any namespace."""
    return (child for child in parent if child.tag == name or ("}" not in name and local(child.tag) == name))


def _copy(source: Element, made: Element, whole: set[Element], partly: set[Element], keys: Keys) -> None:
    for child in source:
        if child in whole or child.tag in keys.get(source.tag, ()):
            made.append(deepcopy(child))
        elif child in partly:
            _copy(child, SubElement(made, child.tag), whole, partly, keys)


class NetconfDevice(Protocol):
    """The device behind a server. The name of the root element of its trees does not matter."""

    keys: Keys

    def initial(self) -> Element:
        """The initial configuration of the device."""
        ...

    def check(self, config: Element) -> None:
        """Check that the device accepts a configuration.

        Raises:
            RpcError: the device does not accept it.
        """
        ...

    def apply(self, config: Element) -> None:
        """Apply a new running configuration."""
        ...

    def state(self) -> Element:
        """The present state, without the configuration."""
        ...
