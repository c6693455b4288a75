"""Fetches the page of one exporter: one GET, one deadline, a limit on its size, and certificates that are checked."""

from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.http import HttpClient, login_headers
from lumctl.devices.logins import Login
from lumctl.devices.protocols import DriverContext
from lumctl.devices.ways import Direct
from lumctl.inventory.exporters import Exporter

MOST_PAGE_BYTES = 8 * 1024 * 1024
"""A node_exporter of a host with hundreds of processors prints less than one MiB."""
_ACCEPT = {"dcgm": "text/plain;version=0.0.4", "gpud": "application/json"}


class PageClient:
    """One exporter over HTTP. Threads fetch one at a time."""

    def __init__(self, exporter: Exporter, *, timeout_s: float) -> None:
        self.exporter = exporter
        # The client takes an address without a scheme for one with TLS.
        address = exporter.origin.removeprefix("https://")
        self._login = Login(exporter.user or "", exporter.secret_file, exporter.secret_variable)
        self._http = HttpClient(
            DriverContext(exporter.program, address, Direct(address), self._login, timeout_s=timeout_s),
            ca_file=exporter.ca_file,
            most_bytes=MOST_PAGE_BYTES,
        )

    def fetch(self, most_s: float) -> str:
        """The page, whole.

        Raises:
            DeviceError: no connection, no whole answer in time, an error of HTTP, or no secret for the login.
        """
        accept = _ACCEPT.get(self.exporter.kind, _ACCEPT["dcgm"])
        with self._http.call(most_s):
            answer = self._http.get(self.exporter.path, headers={**login_headers(self._login), "Accept": accept})
        if "content-length" not in answer.headers and "chunked" not in answer.headers.get("transfer-encoding", ""):
            # Then a connection that broke looks like the end of the page.
            raise DeviceRefusedError(f"{self.exporter.program} at {self.exporter.url} does not say where its page ends")
        return answer.body.decode("utf-8", "replace")
