"""One NETCONF session over one SSH channel: hello, then requests, each answered before the next is read."""

import contextlib
import re
from collections.abc import Callable
from threading import Event
from xml.etree import ElementTree as ET

from lumctl.devices.ways import Stream
from lumctl.sim.netconf.errors import NC, RpcError
from lumctl.sim.netconf.framing import FramingError, Reader, framed
from lumctl.sim.netconf.operations import Operations, capabilities
from lumctl.sim.netconf.tree import local, trimmed
from lumctl.sim.world.misbehaviour import Misbehaviour

_BASE_1_1 = "urn:ietf:params:netconf:base:1.1"
_MOST_READ = 64 * 1024
_PATIENCE_S = 30.0
_FORBIDDEN = re.compile(rb"<!(DOCTYPE|ENTITY)")

Spoil = Callable[[str, bytes], bytes]


class Session:
    """Serves one client.

    ``spoil`` gives what is sent of an operation's answer: if that is less, or something else, the session is cut then.
    """

    def __init__(
        self,
        number: int,
        channel: Stream,
        operations: Operations,
        *,
        candidate: bool,
        conduct: Callable[[], Misbehaviour],
        spoil: Spoil,
        ended: Event,
    ) -> None:
        self.number = number
        self._channel = channel
        self._operations = operations
        self._capabilities = capabilities(candidate=candidate)
        self._conduct = conduct
        self._spoil = spoil
        self._ended = ended
        self._reader = Reader()

    def run(self) -> None:
        """Serve until either side ends it."""
        try:
            with contextlib.suppress(OSError, EOFError, FramingError, ET.ParseError, ValueError):
                self._greet()
                while (message := self._read()) is not None and self._answer(message):
                    pass
        finally:
            self.hang_up()

    def hang_up(self) -> None:
        """Cut the session, from whatever thread."""
        with contextlib.suppress(OSError, EOFError):
            self._channel.close()

    def _greet(self) -> None:
        hello = ET.Element(f"{NC}hello")
        offered = ET.SubElement(hello, f"{NC}capabilities")
        for capability in self._capabilities:
            ET.SubElement(offered, f"{NC}capability").text = capability
        ET.SubElement(hello, f"{NC}session-id").text = str(self.number)
        self._send(framed(_text(hello), chunked=False))
        theirs = self._read()
        if theirs is None:
            raise EOFError
        heard = _parsed(theirs)
        if heard.tag != f"{NC}hello":
            raise ValueError("no hello")
        self._reader.chunked = _BASE_1_1 in {(each.text or "").strip() for each in heard.iter(f"{NC}capability")}

    def _read(self) -> bytes | None:
        while (message := self._reader.next()) is None:
            self._channel.settimeout(None)
            data = self._channel.recv(_MOST_READ)
            if not data:
                return None
            self._reader.feed(data)
        return message

    def _answer(self, message: bytes) -> bool:
        """Do what is asked and say so; false if that was the last of this session."""
        rpc = _parsed(message)
        if self._conduct().down:
            return False
        name, reply = self._replied(rpc)
        conduct = self._conduct()
        if conduct.delay_s > 0:
            self._ended.wait(conduct.delay_s)
        whole = framed(_text(reply), chunked=self._reader.chunked)
        sent = self._spoil(name, conduct.shortened(whole))
        self._send(sent)
        return sent == whole and name != "close-session"

    def _replied(self, rpc: ET.Element) -> tuple[str, ET.Element]:
        """The name of the operation that was asked for, and the reply to it."""
        reply = ET.Element(f"{NC}rpc-reply", {name: value for name, value in rpc.attrib.items() if "}" not in name})
        try:
            asked = _asked(rpc)
        except RpcError as error:
            reply.append(error.element())
            return "", reply
        try:
            reply.append(self._operations.perform(asked))
        except RpcError as error:
            reply.append(error.element())
        return local(asked.tag), reply

    def _send(self, data: bytes) -> None:
        self._channel.settimeout(_PATIENCE_S)
        self._channel.sendall(data)


def _asked(rpc: ET.Element) -> ET.Element:
    if rpc.tag != f"{NC}rpc" or "message-id" not in rpc.attrib:
        info = (("bad-attribute", "message-id"), ("bad-element", "rpc"))
        raise RpcError("missing-attribute", "an rpc with a message-id is expected", info=info)
    if not len(rpc):
        raise RpcError("missing-element", "an rpc asks for something")
    return rpc[0]


def _parsed(message: bytes) -> ET.Element:
    if _FORBIDDEN.search(message):
        raise ValueError("a document type has no place in NETCONF")
    return trimmed(ET.fromstring(message.strip()))  # noqa: S314 - entities are refused above


def _text(element: ET.Element) -> bytes:
    text: bytes = ET.tostring(element, encoding="UTF-8", xml_declaration=True)
    return text
