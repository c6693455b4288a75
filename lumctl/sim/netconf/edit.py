"""Changes of a tree: the edits of ``edit-config``, and the parts of a change."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from lumctl.sim.netconf.tree import NC, Keys, RpcError, children_by_identity, counterpart, identity, shell, step

_OPERATION = f"{NC}operation"
OPERATIONS = frozenset({"merge", "replace", "create", "delete", "remove"})


def edit(config: Element, wanted: Element, default: str, keys: Keys) -> None:
    """Apply an edit to a tree; ``default`` is an operation, or ``none``.

    Raises:
        RpcError: the edit is not possible; the tree may be partly changed, so pass a copy.
    """
    for child in wanted:
        _edit(config, child, default, keys, "")


def _edit(parent: Element, wanted: Element, inherited: str, keys: Keys, above: str) -> None:
    path = above + step(wanted, keys)
    operation = wanted.get(_OPERATION, inherited)
    if operation not in OPERATIONS | {"none"} or (operation == "none" and _OPERATION in wanted.attrib):
        raise RpcError(
            "bad-attribute",
            f"operation {operation!r} does not exist",
            path=path,
            info=(("bad-attribute", "operation"),),
        )
    # Only for its check: it raises if a key is missing.
    identity(wanted, keys, path)
    found = counterpart(parent, wanted, keys)
    if operation in {"delete", "remove", "replace"}:
        if found is not None:
            parent.remove(found)
        elif operation == "delete":
            raise RpcError("data-missing", "the data to delete does not exist", path=path)
    if operation == "create" and found is not None:
        raise RpcError("data-exists", "the data to create already exists", path=path)
    if operation in {"create", "replace"}:
        parent.append(_plain(wanted))
    if operation in {"merge", "none"}:
        _merge(parent, found, wanted, operation, keys, path)


def _merge(parent: Element, found: Element | None, wanted: Element, operation: str, keys: Keys, path: str) -> None:
    if found is None:
        if operation == "none":
            raise RpcError("data-missing", "the data to change does not exist", path=path)
        found = Element(wanted.tag)
        parent.append(found)
    if len(wanted):
        for child in wanted:
            _edit(found, child, operation, keys, path)
    elif operation == "merge" and wanted.text is not None:
        found.text = wanted.text


def _plain(wanted: Element) -> Element:
    made = deepcopy(wanted)
    for each in made.iter():
        each.attrib.pop(_OPERATION, None)
    return made


@dataclass(frozen=True, slots=True)
class EditPart:
    """The smallest part of a change: a leaf that is set, or an element that is removed (``gone``), below ``above``."""

    above: tuple[Element, ...]
    element: Element
    gone: bool


def parts(before: Element, after: Element, keys: Keys, above: tuple[Element, ...] = ()) -> Iterator[EditPart]:
    """The parts of the change from one tree to another, in the order of the trees."""
    old, new = children_by_identity(before, keys), children_by_identity(after, keys)
    for name, child in new.items():
        other = old.get(name)
        if len(child) or (other is not None and len(other)):
            yield from parts(Element(child.tag) if other is None else other, child, keys, (*above, child))
        elif other is None or other.text != child.text:
            yield EditPart(above, child, gone=False)
    for name, child in old.items():
        if name not in new:
            yield EditPart(above, child, gone=True)


def perform(config: Element, part: EditPart, keys: Keys) -> None:
    """Make one part of a change."""
    at = config
    for each in part.above:
        found = counterpart(at, each, keys)
        if found is None:
            found = shell(each, keys)
            at.append(found)
        at = found
    found = counterpart(at, part.element, keys)
    if found is not None and part.gone:
        at.remove(found)
    elif found is not None:
        found.text = part.element.text
    elif not part.gone:
        at.append(deepcopy(part.element))
