"""The twin of a management controller: the part of Redfish over HTTP that a power driver, or an operator's curl, uses.

It serves a controller of a world, or any :class:`Bench` in a test. If there is a login, everything except the service
root requires it: a session, or the password with each request.
"""

import base64
import contextlib
import io
import json
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol

from lumctl.devices.errors import DeviceRefusedError
from lumctl.sim.service import SimulatedService
from lumctl.sim.world.misbehaviour import Misbehaviour

ROOT = "/redfish/v1"
LOGIN_PATH = f"{ROOT}/SessionService/Sessions"
COLLECTIONS = ("Systems", "Chassis")
_WORDS = ("On", "ForceOff", "GracefulShutdown", "ForceRestart")


def root_document(*, login: bool) -> dict[str, Any]:
    """The document of the service root."""
    document: dict[str, Any] = {
        "@odata.id": f"{ROOT}/",
        "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Root Service",
        "RedfishVersion": "1.17.0",
        "Product": "lumctl simulated controller",
        **{collection: {"@odata.id": f"{ROOT}/{collection}"} for collection in COLLECTIONS},
    }
    if login:
        document["Links"] = {"Sessions": {"@odata.id": LOGIN_PATH}}
    return document


def system_document(name: str, *, on: bool) -> dict[str, Any]:
    """The document of one machine."""
    return {
        "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
        "Id": name,
        "Name": name,
        "Manufacturer": "lumctl",
        "Model": "simulated machine",
        "PowerState": "On" if on else "Off",
        "Status": {"State": "Enabled" if on else "StandbyOffline", "Health": "OK", "HealthRollup": "OK"},
        "Links": {"Chassis": [{"@odata.id": f"{ROOT}/Chassis/{name}"}]},
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": f"{ROOT}/Systems/{name}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": list(_WORDS),
            }
        },
    }


def chassis_documents(name: str, *, watts: float) -> dict[str, dict[str, Any]]:
    """The documents of one machine's chassis, with its power draw, by path."""
    chassis, system = f"{ROOT}/Chassis/{name}", {"@odata.id": f"{ROOT}/Systems/{name}"}
    return {
        chassis: {
            "@odata.type": "#Chassis.v1_23_0.Chassis",
            "Id": name,
            "Name": name,
            "ChassisType": "RackMount",
            "Power": {"@odata.id": f"{chassis}/Power"},
            "Links": {"ComputerSystems": [system]},
        },
        f"{chassis}/Power": {
            "@odata.type": "#Power.v1_7_1.Power",
            "Id": "Power",
            "Name": "Power",
            "PowerControl": [
                {"MemberId": "0", "Name": "Machine", "PowerConsumedWatts": round(watts, 1), "RelatedItem": [system]}
            ],
        },
    }


def error_document(message: str) -> dict[str, Any]:
    """The document of an error."""
    return {
        "error": {
            "code": "Base.1.8.GeneralError",
            "message": "See the extended information.",
            "@Message.ExtendedInfo": [
                {"MessageId": "Base.1.8.GeneralError", "Message": message, "Severity": "Critical"}
            ],
        }
    }


REDFISH_DRIVER = "redfish"
_MOST_CONNECTIONS = 32
_MOST_BYTES = 64 * 1024
_MOST_SESSIONS = 16
_OFF_WORDS = frozenset({"ForceOff", "GracefulShutdown"})


class Bench(Protocol):
    """The machines of a controller, and how the controller misbehaves."""

    @property
    def names(self) -> Sequence[str]:
        """The controller's names for its machines."""
        ...

    def conduct(self) -> Misbehaviour:
        """How the controller misbehaves now."""
        ...

    def is_on(self, name: str) -> bool:
        """Whether a machine is on."""
        ...

    def watts(self, name: str) -> float:
        """The power that a machine draws, in W."""
        ...

    def switch(self, name: str, *, on: bool) -> None:
        """Switch a machine. Raises DeviceRefusedError."""
        ...

    def restart(self, name: str) -> None:
        """Restart a machine. Raises DeviceRefusedError."""
        ...


class RedfishTwin:
    """Serves one controller. ``pause`` waits for some seconds, or until the simulator ends."""

    def __init__(
        self, name: str, bench: Bench, pause: Callable[[float], object], *, login: tuple[str, str] | None = None
    ) -> None:
        self.bench = bench
        self.pause = pause
        self.login = login
        self.sessions: set[str] = set()
        self.orders: list[tuple[str, str]] = []
        """Every requested machine and reset type, whether or not the request succeeded."""
        self.service = SimulatedService(f"redfish {name}", self._serve, most=_MOST_CONNECTIONS)

    @property
    def address(self) -> str:
        """The URL of the service. It has no TLS, because it is on loopback only."""
        return f"http://{self.service.address}"

    def _serve(self, connection: socket.socket) -> None:
        threading.Thread(target=self._talk, args=(connection,), name=self.service.name, daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            # Clients that disconnect, or that a fault cuts off, are normal here.
            with contextlib.suppress(OSError, ValueError):
                _Handler(connection, connection.getpeername(), self)
        finally:
            self.service.done_with(connection)

    def let_in(self, authorization: str, token: str) -> bool:
        """Whether a request has the required credentials."""
        if self.login is None or token in self.sessions:
            return True
        expected = base64.b64encode(":".join(self.login).encode()).decode()
        return secrets.compare_digest(authorization.encode(), f"Basic {expected}".encode())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def __init__(self, connection: socket.socket, address: Any, twin: RedfishTwin) -> None:
        self._twin = twin
        super().__init__(connection, address, twin)  # type: ignore[arg-type]  # lumctl uses no part of the server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature is the library's
        """Log nothing: the simulator's log is for errors."""

    def do_GET(self) -> None:
        """Answer a request for a document."""
        path = self._path()
        if path == ROOT:
            return self._say(HTTPStatus.OK, root_document(login=self._twin.login is not None))
        if not self._let_in():
            return None
        document = self._document(path)
        if document is None:
            return self._complain(HTTPStatus.NOT_FOUND, f"Resource {path} does not exist.")
        return self._say(HTTPStatus.OK, document)

    def do_POST(self) -> None:
        """Open a session, or perform an action."""
        path, body = self._path(), self._body()
        if path == LOGIN_PATH and self._twin.login is not None:
            return self._open_session(body)
        if not self._let_in():
            return None
        for name in self._twin.bench.names:
            if path == f"{ROOT}/Systems/{name}/Actions/ComputerSystem.Reset":
                return self._reset(name, body.get("ResetType"))
        return self._complain(HTTPStatus.NOT_FOUND, f"Action {path} does not exist.")

    def do_DELETE(self) -> None:
        """End a session."""
        if self._let_in():
            with contextlib.suppress(KeyError):
                self._twin.sessions.remove(self._path().rpartition("/")[2])
            self._say(HTTPStatus.NO_CONTENT)

    def _document(self, path: str) -> dict[str, Any] | None:
        bench = self._twin.bench
        for collection in COLLECTIONS:
            if path == f"{ROOT}/{collection}":
                members = [{"@odata.id": f"{path}/{name}"} for name in bench.names]
                return {"@odata.id": path, "Members": members, "Members@odata.count": len(members)}
        for name in bench.names:
            known = {
                f"{ROOT}/Systems/{name}": system_document(name, on=bench.is_on(name)),
                **chassis_documents(name, watts=bench.watts(name)),
            }
            if path in known:
                return {"@odata.id": path, **known[path]}
        return None

    def _reset(self, name: str, word: object) -> None:
        bench = self._twin.bench
        self._twin.orders.append((name, str(word)))
        try:
            if word == "ForceRestart":
                bench.restart(name)
            elif word == "On" or word in _OFF_WORDS:
                bench.switch(name, on=word == "On")
            else:
                return self._complain(HTTPStatus.BAD_REQUEST, f"{word!r} is not a ResetType that this system accepts.")
        except DeviceRefusedError as error:
            return self._complain(HTTPStatus.CONFLICT, error.message)
        return self._say(HTTPStatus.NO_CONTENT)

    def _open_session(self, body: dict[str, Any]) -> None:
        if (body.get("UserName"), body.get("Password")) != self._twin.login:
            return self._complain(HTTPStatus.UNAUTHORIZED, "The user name or the password is wrong.")
        if len(self._twin.sessions) >= _MOST_SESSIONS:
            return self._complain(HTTPStatus.SERVICE_UNAVAILABLE, "The maximum number of sessions is open.")
        token = secrets.token_hex(16)
        self._twin.sessions.add(token)
        headers = {"X-Auth-Token": token, "Location": f"{LOGIN_PATH}/{token}"}
        return self._say(HTTPStatus.CREATED, {"@odata.id": headers["Location"], "Id": token}, headers)

    def _let_in(self) -> bool:
        inside = self._twin.let_in(self.headers.get("Authorization", ""), self.headers.get("X-Auth-Token", ""))
        if not inside:
            self._complain(HTTPStatus.UNAUTHORIZED, "Log in first.")
        return inside

    def _path(self) -> str:
        return self.path.partition("?")[0].rstrip("/")

    def _body(self) -> dict[str, Any]:
        """The JSON object in the request's body; empty if there is none."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > _MOST_BYTES:
            # The body is not read, so its bytes would be taken for the next request.
            self.close_connection = True
            return {}
        try:
            found = json.loads(self.rfile.read(int(length)) or b"{}")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _complain(self, status: HTTPStatus, message: str) -> None:
        self._say(status, error_document(message))

    def _say(
        self, status: HTTPStatus, document: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> None:
        body = b"" if document is None else json.dumps(document).encode() + b"\n"
        # Collected before it is sent, so that a fault can cut headers and body as one answer.
        out, self.wfile = self.wfile, io.BytesIO()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "OData-Version": "4.0", **(headers or {})}.items():
            self.send_header(name, value)
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        said, self.wfile = self.wfile.getvalue() + body, out
        conduct = self._twin.bench.conduct()
        self._twin.pause(conduct.delay_s)
        self.wfile.write(conduct.shortened(said))
        if conduct.cuts:
            self.close_connection = True
