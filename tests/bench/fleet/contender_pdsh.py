"""pdsh with its ssh module, started for each tick as an operator would, over kept connections of ssh."""

import os
import subprocess
from collections.abc import Mapping

from contender import Settings, serve, unlabelled


class Pdsh:
    def __init__(self, settings: Settings) -> None:
        hosts = settings["hosts"]
        self._command = ["pdsh", "-S", "-R", "ssh", "-f", str(len(hosts)), "-w", ",".join(hosts), settings["command"]]
        self._environment = os.environ | {"PDSH_SSH_ARGS_APPEND": f"-F {settings['kept_config']}"}
        self._output = b""

    def tick(self) -> None:
        self._output = b""
        ended = subprocess.run(
            self._command, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=self._environment
        )
        self._output = ended.stdout

    def answers(self) -> Mapping[str, bytes]:
        return unlabelled(self._output)

    def close(self) -> None:
        pass


if __name__ == "__main__":
    serve(Pdsh)
