"""parallel-ssh with its connections kept: both of its clients, over libssh2 and over libssh."""

import importlib
from collections.abc import Mapping

from contender import Settings, serve


class ParallelSsh:
    def __init__(self, settings: Settings) -> None:
        library = {"ssh2": "native", "ssh": "ssh"}[settings["variant"]]
        client = importlib.import_module(f"pssh.clients.{library}").ParallelSSHClient
        hosts = list(settings["hosts"])
        self._client = client(
            hosts,
            user=settings["user"],
            port=settings["port"],
            pkey=settings["key"],
            pool_size=len(hosts),
            allow_agent=False,
            identity_auth=False,
        )
        self._command = settings["command"]
        self._lines: dict[str, list[str]] = {}
        self.tick()

    def tick(self) -> None:
        self._lines = {}
        for answer in self._client.run_command(self._command):
            self._lines[answer.host] = list(answer.stdout)
            if answer.exit_code != 0:
                raise RuntimeError(f"{answer.host}: exit status {answer.exit_code}")

    def answers(self) -> Mapping[str, bytes]:
        return {host: "\n".join(lines).encode() for host, lines in self._lines.items()}

    def close(self) -> None:
        pass


if __name__ == "__main__":
    serve(ParallelSsh)
