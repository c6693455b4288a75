"""The clients, each opened once and then asked to read and to change. Every one checks the host's key."""

import re
import socket
from typing import TYPE_CHECKING, Protocol
from xml.etree import ElementTree as ET

import paramiko
from netconfd import Netconfd

from lumctl.devices.netconf import NetconfClient

if TYPE_CHECKING:
    from collections.abc import Callable

NS = "urn:ietf:params:xml:ns:netconf:base:1.0"
FILTER = '<joins xmlns="urn:lumctl:joins"/>'
JOINS = '<joins xmlns="urn:lumctl:joins"><join><ingress>1</ingress><egress>{}</egress></join></joins>'
PATIENCE_S = 10


class Contender(Protocol):
    """One client of one server."""

    def __init__(self, server: Netconfd) -> None: ...
    def open(self) -> None: ...
    def read(self) -> object:
        """The configuration, as this client gives it; its text shows what is in it."""
        ...

    def change(self, egress: int) -> None: ...
    def close(self) -> None: ...


class Tree:
    """A tree that is made text only when somebody looks."""

    def __init__(self, root: ET.Element) -> None:
        self._root = root

    def __str__(self) -> str:
        return ET.tostring(self._root, encoding="unicode")


class Ours:
    """lumctl's client over its own way."""

    def __init__(self, server: Netconfd) -> None:
        self._client = NetconfClient(server.context(timeout_s=PATIENCE_S))

    def open(self) -> None:
        self._client.capabilities()

    def read(self) -> "Tree":
        return Tree(self._client.get_config("running", FILTER))

    def change(self, egress: int) -> None:
        self._client.edit_config(JOINS.format(egress))
        self._client.commit()

    def close(self) -> None:
        self._client.close()


class RawChannel:
    """A paramiko channel, text and a search for the end: what no client over paramiko can be faster than."""

    def __init__(self, server: Netconfd) -> None:
        self._server = server

    def open(self) -> None:
        server = self._server
        self._transport = paramiko.Transport(socket.create_connection(("127.0.0.1", server.port)))
        known = paramiko.HostKeys(str(server.folder / "known_hosts"))
        self._transport.start_client(timeout=PATIENCE_S)
        assert known.check(f"[127.0.0.1]:{server.port}", self._transport.get_remote_server_key())
        user = server.endpoint().ssh.user
        self._transport.auth_publickey(user, paramiko.Ed25519Key.from_private_key_file(str(server.folder / "user_key")))
        self._channel = self._transport.open_session()
        self._channel.invoke_subsystem("netconf")
        capabilities = "<capability>urn:ietf:params:netconf:base:1.1</capability>"
        self._send(f'<hello xmlns="{NS}"><capabilities>{capabilities}</capabilities></hello>]]>]]>')
        self._until(b"]]>]]>")

    def read(self) -> str:
        return self._call(
            f'<get-config><source><running/></source><filter type="subtree">{FILTER}</filter></get-config>'
        )

    def change(self, egress: int) -> None:
        config = JOINS.format(egress)
        self._call(f"<edit-config><target><candidate/></target><config>{config}</config></edit-config>")
        self._call("<commit/>")

    def close(self) -> None:
        self._transport.close()

    def _call(self, operation: str) -> str:
        text = f'<?xml version="1.0" encoding="UTF-8"?><rpc xmlns="{NS}" message-id="1">{operation}</rpc>'
        self._channel.sendall(f"\n#{len(text)}\n{text}\n##\n".encode())
        return self._until(b"\n##\n")

    def _send(self, text: str) -> None:
        self._channel.sendall(f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode())

    def _until(self, end: bytes) -> str:
        got = b""
        while not got.endswith(end):
            got += self._channel.recv(65536)
        return got.decode()


class Ncclient:
    """ncclient over its own paramiko."""

    def __init__(self, server: Netconfd) -> None:
        from ncclient import manager

        self._connect, self._server = manager.connect, server

    def open(self) -> None:
        at = self._server.endpoint()
        self._manager = self._connect(
            host="127.0.0.1",
            port=self._server.port,
            username=at.ssh.user,
            key_filename=str(at.ssh.key_file),
            hostkey_verify=True,
            hostkey_b64=self._server.host_key,
            look_for_keys=False,
            allow_agent=False,
            timeout=PATIENCE_S,
        )

    def read(self) -> str:
        return str(self._manager.get_config("running", filter=("subtree", FILTER)).data_xml)

    def change(self, egress: int) -> None:
        self._manager.edit_config(target="candidate", config=f'<config xmlns="{NS}">{JOINS.format(egress)}</config>')
        self._manager.commit()

    def close(self) -> None:
        self._manager.close_session()


class _Scrapli:
    """scrapli's NETCONF; the transport is OpenSSH's client as a process, or libssh2 in its own library."""

    transport = "bin"

    def __init__(self, server: Netconfd) -> None:
        import scrapli
        from scrapli.netconf import DatastoreType

        at = server.endpoint()
        known = str(server.folder / "known_hosts")
        if self.transport == "bin":
            transport = scrapli.TransportBinOptions(enable_strict_key=True, known_hosts_path=known)
        else:
            transport = scrapli.TransportSsh2Options(known_hosts_path=known)
        self._stores = DatastoreType
        self._client = scrapli.Netconf(
            "127.0.0.1",
            port=server.port,
            auth_options=scrapli.AuthOptions(username=at.ssh.user, private_key_path=str(at.ssh.key_file)),
            session_options=scrapli.SessionOptions(operation_timeout_s=PATIENCE_S),
            transport_options=transport,
        )

    def open(self) -> None:
        self._client.open()

    def read(self) -> str:
        return self._sound(self._client.get_config(source=self._stores.RUNNING, filter_=FILTER))

    def change(self, egress: int) -> None:
        config = f"<config>{JOINS.format(egress)}</config>"
        self._sound(self._client.edit_config(config=config, target=self._stores.CANDIDATE))
        self._sound(self._client.commit())

    def close(self) -> None:
        # It may wait in vain for the answer to its close-session: netconfd may be faster in hanging up.
        self._client.close(force=True)

    @staticmethod
    def _sound(said: object) -> str:
        text = str(said.result)  # type: ignore[attr-defined]
        assert not re.search("rpc-error", text), text
        return text


class ScrapliBin(_Scrapli):
    """With OpenSSH's client."""


class ScrapliSsh2(_Scrapli):
    """With libssh2."""

    transport = "ssh2"


CONTENDERS: "dict[str, Callable[[Netconfd], Contender]]" = {
    "lumctl": Ours,
    "raw paramiko channel": RawChannel,
    "ncclient": Ncclient,
    "scrapli, ssh process": ScrapliBin,
    "scrapli, libssh2": ScrapliSsh2,
}
