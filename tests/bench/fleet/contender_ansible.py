"""Ansible ad hoc: the ``raw`` module (no Python on the host: the least it can do), 64 forks, kept connections."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from contender import Settings, serve

_FORKS = 64
_CONFIG = """\
[defaults]
forks = {forks}
gathering = explicit
host_key_checking = True
remote_user = {user}
nocolor = True
home = {folder}/ansible
local_tmp = {folder}/ansible/tmp
[ssh_connection]
ssh_args = -F {kept_config}
"""
_HEADER = re.compile(rb"^(\S+) \| CHANGED \| rc=0 >>\n", re.MULTILINE)


class Ansible:
    def __init__(self, settings: Settings) -> None:
        folder = Path(settings["folder"])
        inventory, config = folder / "ansible.ini", folder / "ansible.cfg"
        inventory.write_text("\n".join(settings["hosts"]) + "\n")
        config.write_text(_CONFIG.format(forks=_FORKS, **settings))
        ansible = str(Path(sys.executable).with_name("ansible"))
        self._command = [ansible, "all", "-i", str(inventory), "-m", "raw", "-a", settings["command"]]
        self._environment = os.environ | {"ANSIBLE_CONFIG": str(config)}
        self._output = b""

    def tick(self) -> None:
        self._output = b""
        ended = subprocess.run(
            self._command, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=self._environment
        )
        self._output = ended.stdout

    def answers(self) -> Mapping[str, bytes]:
        _, *parts = _HEADER.split(self._output)
        return {host.decode(): text for host, text in zip(parts[::2], parts[1::2], strict=True)}

    def close(self) -> None:
        pass


if __name__ == "__main__":
    serve(Ansible)
