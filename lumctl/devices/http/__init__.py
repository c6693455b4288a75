"""An HTTP client for drivers: one deadline for a whole call, bounded answers, verified TLS, the errors of devices.

    with self._http.call():                               # one deadline for the whole block
        ports = self._http.get_json("/api/v1/ports")
        self._http.send("PUT", "/api/v1/ports/3", {"enabled": True})

It connects by ``context.way``, authenticates with ``context.login``, and sends a change once. See lumctl-driver(7).
"""

from lumctl.devices.http.client import Clock, HttpAnswer, HttpClient, LostAnswerError, login_headers
from lumctl.devices.http.failures import Failures
from lumctl.devices.http.texts import error_text, one_line, same_origin_path

__all__ = [
    "Clock",
    "Failures",
    "HttpAnswer",
    "HttpClient",
    "LostAnswerError",
    "error_text",
    "login_headers",
    "one_line",
    "same_origin_path",
]
