"""ClusterShell's clush, started for each tick as an operator would, over kept connections of ssh."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from contender import Settings, serve, unlabelled


class Clush:
    def __init__(self, settings: Settings) -> None:
        hosts = settings["hosts"]
        clush = str(Path(sys.executable).with_name("clush"))
        options = f"-F {settings['kept_config']}"
        self._command = [clush, "-S", "-w", ",".join(hosts), "-f", str(len(hosts)), "-o", options, settings["command"]]
        self._output = b""

    def tick(self) -> None:
        self._output = b""
        self._output = subprocess.run(self._command, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout

    def answers(self) -> Mapping[str, bytes]:
        return unlabelled(self._output)

    def close(self) -> None:
        pass


if __name__ == "__main__":
    serve(Clush)
