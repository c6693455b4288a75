"""NETCONF messages as text and as trees. What a device sends is parsed with no document type, so nothing expands."""

import re
import xml.etree.ElementTree as ET
from xml.etree.ElementTree import Element

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
