"""One NETCONF session over one SSH channel: hello, then requests, each answered before the next is read."""

import contextlib
import re
from collections.abc import Callable
from threading import Event
from xml.etree import ElementTree as ET

from lumctl.devices.ways import Stream
from lumctl.sim.netconf.operations import Operations, capabilities
from lumctl.sim.netconf.tree import NC, RpcError, local, trimmed
from lumctl.sim.world.misbehaviour import Misbehaviour

END = b"]]>]]>"
_CHUNK = re.compile(rb"\n#([1-9][0-9]{0,9})\n")
_CHUNKS_END = b"\n##\n"
_LONGEST_HEADER = 16
_MOST_BYTES = 4 * 1024 * 1024


class BadFrameError(Exception):
    """The client violates the framing, or sends a message that is too large."""


class Reader:
    """Collects bytes and returns complete messages. As in every session, the first ones end with the end marker."""

    def __init__(self) -> None:
        self.chunked = False
        self._came = bytearray()

    def feed(self, data: bytes) -> None:
        """Add received bytes.

        Raises:
            BadFrameError: a message is too large.
        """
        self._came += data
        if len(self._came) > _MOST_BYTES:
            raise BadFrameError("a message is too large")

    def next(self) -> bytes | None:
        """The next complete message; ``None`` if it has not arrived yet.

        Raises:
            BadFrameError: the received bytes are not a valid chunk.
        """
        return self._chunks() if self.chunked else self._marked()

    def _marked(self) -> bytes | None:
        at = self._came.find(END)
        if at < 0:
            return None
        message = bytes(self._came[:at])
        del self._came[: at + len(END)]
        return message

    def _chunks(self) -> bytes | None:
        """A message of chunks. It is parsed from its start each time, which is cheap because requests are small."""
        at, pieces = 0, bytearray()
        while True:
            if self._came.startswith(_CHUNKS_END, at):
                del self._came[: at + len(_CHUNKS_END)]
                return bytes(pieces)
            header = _CHUNK.match(self._came, at)
            if header is None:
                if len(self._came) - at >= _LONGEST_HEADER:
                    raise BadFrameError("the data is not a chunk")
                return None
            size, start = int(header[1]), header.end()
            if size > _MOST_BYTES:
                raise BadFrameError("a chunk is too large")
            if len(self._came) < start + size:
                return None
            pieces += self._came[start : start + size]
            at = start + size


def framed(message: bytes, *, chunked: bool) -> bytes:
    """A message with its framing, as it is sent."""
    return b"\n#%d\n%b%b" % (len(message), message, _CHUNKS_END) if chunked else message + END


_BASE_1_1 = "urn:ietf:params:netconf:base:1.1"
_MOST_READ = 64 * 1024
_PATIENCE_S = 30.0
_FORBIDDEN = re.compile(rb"<!(DOCTYPE|ENTITY)")

Spoil = Callable[[str, bytes], bytes]


class ServerSession:
    """Serves one client.

    ``spoil`` returns the bytes to send for an operation's answer. If they differ from the answer, the session ends
    after they are sent.
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
        """Serve until either side ends the session."""
        try:
            with contextlib.suppress(OSError, EOFError, BadFrameError, ET.ParseError, ValueError):
                self._greet()
                while (message := self._read()) is not None and self._answer(message):
                    pass
        finally:
            self.hang_up()

    def hang_up(self) -> None:
        """Cut the session; may be called from any thread."""
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
        """Perform a request and answer it; return false if it was the last of this session."""
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
        """The name of the requested operation, and the reply to it."""
        # A reply repeats the attributes of its request (RFC 6241, 4.2).
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
        raise RpcError("missing-element", "the rpc contains no operation")
    return rpc[0]


def _parsed(message: bytes) -> ET.Element:
    if _FORBIDDEN.search(message):
        raise ValueError("NETCONF does not allow a document type")
    return trimmed(ET.fromstring(message.strip()))  # noqa: S314 - entities are refused above


def _text(element: ET.Element) -> bytes:
    text: bytes = ET.tostring(element, encoding="UTF-8", xml_declaration=True)
    return text
