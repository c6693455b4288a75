"""Servers that answer each request in a thread of its own, but only so many at once."""

import socketserver
import threading
from typing import Any

MOST_AT_ONCE = 16
POLL_S = 0.1
"""How long an end may take to be noticed."""


class Bounded(socketserver.ThreadingMixIn):
    """Mixed into a ``socketserver.BaseServer``: it hangs up on whoever comes when all places are taken."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(*arguments, **options)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, or hang up."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)  # type: ignore[attr-defined]

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and free the place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asks nonsense, or leaves before the answer, is no trouble of the daemon's."""
