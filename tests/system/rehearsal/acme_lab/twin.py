"""The twin: the protocol of an Acme mesh, over one mesh of the simulated world."""

import contextlib
import json
import socketserver
import sys
import threading

from lumctl.devices.errors import DeviceError
from lumctl.devices.types import PucState


@contextlib.contextmanager
def acme(device, listen):
    """Serve the device until the block ends."""

    def done(do, content):
        if do == "who":
            return f"{device.id}, {device.puc_count} PUCs"
        if do == "left":
            progress = device.read_progress()
            return progress.total - progress.done if progress else 0
        if do == "set":
            device.write({int(puc): PucState.CROSS if crossed else PucState.BAR for puc, crossed in content.items()})
        states = device.read_states()
        return [states[puc] is PucState.CROSS for puc in range(device.puc_count)]

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            try:
                said = {"yes": done(*json.loads(self.rfile.readline()))}
            except DeviceError as error:
                said = {"no": error.message}
            self.wfile.write(json.dumps(said).encode())

    with socketserver.ThreadingTCPServer((listen, 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def broken(device, listen):
    """Fail."""
    raise RuntimeError(f"no licence for {device.id} at {listen}\x1b[2J")


def hanging(device, listen):  # noqa: ARG001 - the signature of a twin
    """Never come back."""
    threading.Event().wait()


@contextlib.contextmanager
def printing(device, listen):
    """Print what the parent might take for the simulator's own answer."""
    print("{not json", file=sys.stderr, flush=True)  # noqa: T201 - a stranger's
    with acme(device, listen) as port:
        yield port
