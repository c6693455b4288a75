"""What a NETCONF server answers when it says no (RFC 6241, appendix A)."""

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
        """The error as it stands in a reply."""
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
