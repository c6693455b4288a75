"""mitogen: a Python of its own stays on every host, and is called for each tick."""

import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import mitogen.master
import mitogen.utils
from contender import Settings, serve

_CONNECT_AT_ONCE = 8


def read(command: str) -> bytes:
    """Run on the host."""
    return subprocess.check_output(command.split())


class Mitogen:
    def __init__(self, settings: Settings) -> None:
        self._broker = mitogen.master.Broker()
        self._router = mitogen.master.Router(self._broker)
        self._command = settings["command"]
        self._answers: dict[str, bytes] = {}

        def connect(host: str) -> object:
            # Many Pythons start at once, on a machine that is also all of the hosts.
            return self._router.ssh(
                hostname=host,
                ssh_args=["-F", settings["config"]],
                check_host_keys="enforce",
                python_path=sys.executable,
                connect_timeout=120,
            )

        with ThreadPoolExecutor(_CONNECT_AT_ONCE) as pool:
            self._contexts = dict(zip(settings["hosts"], pool.map(connect, settings["hosts"]), strict=True))
        self.tick()

    def tick(self) -> None:
        self._answers = {}
        asked = {host: context.call_async(read, self._command) for host, context in self._contexts.items()}
        for host, receiver in asked.items():
            self._answers[host] = bytes(receiver.get().unpickle())

    def answers(self) -> Mapping[str, bytes]:
        return self._answers

    def close(self) -> None:
        self._broker.shutdown()
        self._broker.join()


if __name__ == "__main__":
    serve(Mitogen)
