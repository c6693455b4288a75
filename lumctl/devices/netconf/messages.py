"""NETCONF messages as text and as XML trees, and an ``rpc-error`` (RFC 6241, 4.3) as one of our errors.

A message with a document type is refused before it is parsed, so no entity of it is ever expanded.
"""

import re
import xml.etree.ElementTree as ET
from xml.etree.ElementTree import Element

from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceError,
    DeviceRefusedError,
    InconsistentError,
    OutcomeUnknownError,
)
from lumctl.devices.formats.complaint import first_line

NS = "urn:ietf:params:xml:ns:netconf:base:1.0"
BASE_1_0 = "urn:ietf:params:netconf:base:1.0"
BASE_1_1 = "urn:ietf:params:netconf:base:1.1"
_NOTIFICATION = "{urn:ietf:params:xml:ns:netconf:notification:1.0}notification"
_PROLOG = '<?xml version="1.0" encoding="UTF-8"?>\n'
# Possessive throughout: hostile bytes make it walk once over them, never back.
_DOCUMENT_TYPE = re.compile(r"\ufeff?(?:\s++|<\?(?>.*?\?>)|<!--(?>.*?-->))*+<!DOCTYPE", re.DOTALL)
_DEEPEST = 200
"""No data model nests as deep; Python's own walks over a tree go by its stack."""


class MessageError(Exception):
    """What came is no NETCONF message. The message says why."""


def hello() -> str:
    """Ours: we speak both versions of the framing."""
    offered = "".join(f"<capability>{uri}</capability>" for uri in (BASE_1_0, BASE_1_1))
    return f'{_PROLOG}<hello xmlns="{NS}"><capabilities>{offered}</capabilities></hello>'


def rpc(message_id: int, operation: str) -> str:
    """A request; within it ``nc:`` is NETCONF's own namespace, for attributes such as ``nc:operation``."""
    return f'{_PROLOG}<rpc xmlns="{NS}" xmlns:nc="{NS}" message-id="{message_id}">{operation}</rpc>'


def parse(message: bytes) -> Element:
    """The tree of a message.

    Raises:
        MessageError: it is not UTF-8, declares a document type, is not well-formed, or nests too deep.
    """
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise MessageError("a message that is not UTF-8 came") from None
    if _DOCUMENT_TYPE.match(text):
        raise MessageError("a message with a document type came, which NETCONF forbids")
    try:
        root = ET.fromstring(text.removeprefix("\ufeff"))  # noqa: S314 - no document type, so no entities
    except (ET.ParseError, ValueError, LookupError):
        raise MessageError("a message that is not well-formed came") from None
    level = [root]
    for _ in range(_DEEPEST):
        level = [child for element in level for child in element]
        if not level:
            return root
    raise MessageError(f"a message that nests more than {_DEEPEST} deep came")


def is_notification(root: Element) -> bool:
    """Whether a message is one that nobody asked for."""
    return root.tag == _NOTIFICATION


def reads_as_xml(fragment: str) -> bool:
    """Whether a fragment stays within the element that it is put in, and does not end the message."""
    if "]]>]]>" in fragment:
        return False
    try:
        ET.fromstring(f'<f xmlns:nc="{NS}">{fragment}</f>')  # noqa: S314 - a fragment cannot declare a document type
    except (ET.ParseError, ValueError):
        return False
    return True


def capabilities_of(root: Element) -> frozenset[str]:
    """What a hello offers.

    Raises:
        MessageError: it is no hello, or offers no version of NETCONF that we speak.
    """
    if root.tag != f"{{{NS}}}hello":
        raise MessageError("it does not begin with a NETCONF hello")
    offered = frozenset((each.text or "").strip() for each in root.iterfind(f"{{{NS}}}capabilities/{{{NS}}}capability"))
    if not offered & {BASE_1_0, BASE_1_1}:
        raise MessageError("its hello offers no version of NETCONF that we speak")
    return offered


_NAMES_CAUSES = (f"{{{NS}}}", "{urn:ietf:params:xml:ns:yang:1}")
"""Namespaces whose words in an error-info tell an operator something."""
_BUSY = {"lock-denied", "in-use"}
_HALF_DONE = {"partial-operation", "rollback-failed"}
_HINTS = {
    "access-denied": "the device lets this user in, and not do this: check its access rules",
    "lock-denied": "another session holds the device's configuration: wait for it, or end it on the device",
}


def refusal(reply: Element, where: str, *, may_be_partial: bool = False) -> DeviceError | None:
    """The error that a reply tells of; ``None`` if there is none, warnings aside.

    ``may_be_partial``: the device was not bound to undo what it took before it said no.
    """
    errors = [each for each in reply.iterfind(_named("rpc-error")) if _of(each, "error-severity") != "warning"]
    if not errors:
        return None
    tags = [_of(each, "error-tag") for each in errors]
    first = next((each for each, tag in zip(errors, tags, strict=True) if tag in _HALF_DONE), errors[0])
    tag = _of(first, "error-tag") or "no error-tag"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    message = f"{where}: refused: {_described(first, tag)}{more}"
    if tag in _HALF_DONE:
        return InconsistentError(f"{message}; some of the change may stand", hint="read the device back")
    if tag in _BUSY:
        return DeviceBusyError(message, hint=_HINTS.get(tag))
    if may_be_partial:
        return OutcomeUnknownError(
            f"{message}; this device does not undo what it took before that", hint="read the device back"
        )
    return DeviceRefusedError(message, hint=_HINTS.get(tag))


def _described(error: Element, tag: str) -> str:
    """Tag, path, the device's words, and what it names as the cause: ``in-use at /a/b: locked (session-id 3)``."""
    path, said = _of(error, "error-path"), _of(error, "error-message")
    kind = _of(error, "error-app-tag")
    info = error.find(_named("error-info"))
    told = [] if info is None else [each for each in info if each.tag.startswith(_NAMES_CAUSES) and _text(each)]
    named = ", ".join(f"{each.tag.rpartition('}')[2]} {_text(each)}" for each in told[:3])
    return "".join(
        (
            tag,
            f" ({kind})" if kind else "",
            f" at {path}" if path else "",
            f": {said}" if said else "",
            f" ({named})" if named else "",
        )
    )


def _named(name: str) -> str:
    return f"{{{NS}}}{name}"


def _of(error: Element, name: str) -> str:
    found = error.find(_named(name))
    return "" if found is None else _text(found)


def _text(element: Element) -> str:
    return first_line(" ".join((element.text or "").split()))
