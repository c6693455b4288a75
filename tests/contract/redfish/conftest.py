"""Management controllers on loopback that say what a test wants them to say."""

import contextlib
import json
import time

import pytest
from lumctl_redfish import RedfishPower

from lumctl.devices.protocols import DriverContext
from lumctl.devices.ways import Direct

TIMEOUT_S = 0.5
ROOT, SYSTEMS, SYSTEM, CHASSIS = "/redfish/v1/", "/redfish/v1/Systems", "/redfish/v1/Systems/a", "/redfish/v1/Chassis/a"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
DOCUMENTS = {
    ROOT: {"RedfishVersion": "1.6.0", "Systems": {"@odata.id": SYSTEMS}},
    SYSTEMS: {"Members": [{"@odata.id": SYSTEM}]},
    SYSTEM: {
        "Model": "M1",
        "PowerState": "On",
        "Status": {"Health": "OK"},
        "Links": {"Chassis": [{"@odata.id": CHASSIS}]},
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": RESET,
                "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "GracefulShutdown", "PowerCycle"],
            }
        },
    },
    CHASSIS: {"EnvironmentMetrics": {"@odata.id": f"{CHASSIS}/EnvironmentMetrics"}},
    f"{CHASSIS}/EnvironmentMetrics": {"PowerWatts": {"Reading": 321.5}},
}


def whole(status, body=b"", headers="") -> bytes:
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status} Said\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


class Controller:
    """Answers what it is asked from documents, unless ``says`` holds other bytes, or something to do, for a request."""

    whole = staticmethod(whole)

    def __init__(self) -> None:
        self.documents = dict(DOCUMENTS)
        self.says = {}
        self.asked = []

    def __call__(self, connection) -> None:
        with connection.makefile("rb") as lines:
            while request := lines.readline().split():
                method, path = request[0].decode(), request[1].decode()
                length = 0
                while (line := lines.readline().strip()) != b"":
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                self.asked.append((method, path, lines.read(length)))
                if not self._answer(connection, method, path):
                    return

    def _answer(self, connection, method, path) -> bool:
        said = self.says.get((method, path))
        if callable(said):
            said(connection)
            return False
        if said is None:
            known = path in self.documents
            said = whole(200, self.documents[path]) if known else whole(404 if method == "GET" else 204)
        connection.sendall(said)
        return True

    @property
    def orders(self) -> list[str]:
        return [json.loads(body)["ResetType"] for method, _, body in self.asked if method == "POST"]


@pytest.fixture
def make_controller():
    return Controller


@pytest.fixture
def controller():
    return Controller()


@pytest.fixture
def make_driver():
    with contextlib.ExitStack() as opened:

        def make(address, **settings) -> RedfishPower:
            way = Direct(address)
            context = DriverContext("bmc1", f"http://{address}", way, timeout_s=TIMEOUT_S, now=time.time, **settings)
            return opened.enter_context(contextlib.closing(RedfishPower(context)))

        yield make


@pytest.fixture
def driver(controller, serve, make_driver):
    return make_driver(serve(controller))


@contextlib.contextmanager
def _bounded():
    began = time.monotonic()
    yield
    assert time.monotonic() - began < TIMEOUT_S + 1.5


@pytest.fixture
def bounded():
    """A block that must end soon after the driver's deadline."""
    return _bounded
