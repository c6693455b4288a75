"""A twin of the controller: it speaks the protocol over a real socket, and tells what it really holds."""

import socketserver
import threading


class Twin(socketserver.ThreadingTCPServer):
    """Serves one made-up mesh on loopback; use it as a context manager."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, puc_count: int) -> None:
        super().__init__(("127.0.0.1", 0), _Line)
        self.states = ["="] * puc_count
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"127.0.0.1:{self.server_address[1]}"

    def answer(self, line: str) -> str:
        """What it says to a line."""
        if line == "size":
            return f"size {len(self.states)}"
        if line == "states":
            return f"states {''.join(self.states)}"
        wanted = [word.split("=", 1) for word in line.removeprefix("set ").split()]
        if not all(puc.isdecimal() and int(puc) < len(self.states) and mark in {"=", "x"} for puc, mark in wanted):
            return "no such thing"
        for puc, mark in wanted:
            self.states[int(puc)] = mark
        return "ok"

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self._thread.join()
        super().__exit__(*error)


class _Line(socketserver.StreamRequestHandler):
    server: Twin

    def handle(self) -> None:
        line = self.rfile.readline(65536)
        if line.endswith(b"\n"):
            self.wfile.write(f"{self.server.answer(line.decode().strip())}\n".encode())
