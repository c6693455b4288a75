"""NETCONF messages as text and as XML trees; translates an ``rpc-error`` (RFC 6241, 4.3) into a device error.

A message with a document type is refused before it is parsed, so its entities are never expanded.
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
# All quantifiers are possessive: the match passes over hostile bytes once and never backtracks.
_DOCUMENT_TYPE = re.compile(r"\ufeff?(?:\s++|<\?(?>.*?\?>)|<!--(?>.*?-->))*+<!DOCTYPE", re.DOTALL)
_DEEPEST = 200
"""Limit of nesting; no data model needs that much, and Python walks trees by recursion, limited by its stack."""


class MessageError(Exception):
    """The received bytes are not a NETCONF message. The error's message says why."""


def hello() -> str:
    """Our hello: it offers both versions of the framing."""
    offered = "".join(f"<capability>{uri}</capability>" for uri in (BASE_1_0, BASE_1_1))
    return f'{_PROLOG}<hello xmlns="{NS}"><capabilities>{offered}</capabilities></hello>'


def rpc(message_id: int, operation: str) -> str:
    """A request; ``nc:`` is bound to NETCONF's namespace in it, for attributes such as ``nc:operation``."""
    return f'{_PROLOG}<rpc xmlns="{NS}" xmlns:nc="{NS}" message-id="{message_id}">{operation}</rpc>'


def parse(message: bytes) -> Element:
    """The tree of a message.

    Raises:
        MessageError: it is not UTF-8, declares a document type, is not well-formed, or is nested too deeply.
    """
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise MessageError("received a message that is not UTF-8") from None
    if _DOCUMENT_TYPE.match(text):
        raise MessageError("received a message with a document type, which NETCONF forbids")
    try:
        root = ET.fromstring(text.removeprefix("\ufeff"))  # noqa: S314 - no document type, so no entities
    except (ET.ParseError, ValueError, LookupError):
        raise MessageError("received a message that is not well-formed") from None
    # Level by level: recursion is what a message nested too deeply would break.
    level = [root]
    for _ in range(_DEEPEST):
        level = [child for element in level for child in element]
        if not level:
            return root
    raise MessageError(f"received a message that nests more than {_DEEPEST} levels deep")


def is_notification(root: Element) -> bool:
    """Whether a message is a notification, which the device sends without a request."""
    return root.tag == _NOTIFICATION


def reads_as_xml(fragment: str) -> bool:
    """Whether a fragment is well-formed, so that it cannot close the element around it or end the message."""
    # In a comment this is well-formed, and still ends the message in the framing of base 1.0.
    if "]]>]]>" in fragment:
        return False
    try:
        ET.fromstring(f'<f xmlns:nc="{NS}">{fragment}</f>')  # noqa: S314 - a fragment cannot declare a document type
    except (ET.ParseError, ValueError):
        return False
    return True


def capabilities_of(root: Element) -> frozenset[str]:
    """The capabilities in a hello.

    Raises:
        MessageError: it is not a hello, or offers no version of NETCONF that we support.
    """
    if root.tag != f"{{{NS}}}hello":
        raise MessageError("it does not begin with a NETCONF hello")
    offered = frozenset((each.text or "").strip() for each in root.iterfind(f"{{{NS}}}capabilities/{{{NS}}}capability"))
    if not offered & {BASE_1_0, BASE_1_1}:
        raise MessageError("its hello offers no version of NETCONF that lumctl supports")
    return offered


_NAMES_CAUSES = (f"{{{NS}}}", "{urn:ietf:params:xml:ns:yang:1}")
"""Namespaces of the elements in an error-info that are useful to an operator."""
_BUSY = {"lock-denied", "in-use"}
_HALF_DONE = {"partial-operation", "rollback-failed"}
_HINTS = {
    "access-denied": "the device accepts this user's login, but not this operation: check its access rules",
    "lock-denied": "another session has locked the device's configuration: wait for it, or end it on the device",
}


def refusal(reply: Element, where: str, *, may_be_partial: bool = False) -> DeviceError | None:
    """The error in a reply; ``None`` if it has none. Warnings do not count.

    ``may_be_partial``: the device may keep the part of the change that it made before it refused.
    """
    errors = [each for each in reply.iterfind(_named("rpc-error")) if _of(each, "error-severity") != "warning"]
    if not errors:
        return None
    tags = [_of(each, "error-tag") for each in errors]
    # One error that says that part of the change stands decides, whatever the others say.
    first = next((each for each, tag in zip(errors, tags, strict=True) if tag in _HALF_DONE), errors[0])
    tag = _of(first, "error-tag") or "no error-tag"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    message = f"{where}: refused: {_described(first, tag)}{more}"
    if tag in _HALF_DONE:
        return InconsistentError(f"{message}; part of the change may be in effect", hint="read the device back")
    if tag in _BUSY:
        return DeviceBusyError(message, hint=_HINTS.get(tag))
    if may_be_partial:
        return OutcomeUnknownError(
            f"{message}; this device does not undo what it accepted before the error", hint="read the device back"
        )
    return DeviceRefusedError(message, hint=_HINTS.get(tag))


def _described(error: Element, tag: str) -> str:
    """Tag, path, the device's message, and the reported cause: ``in-use at /a/b: locked (session-id 3)``."""
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
