"""Jobs that ``lumctl job run --target rack`` runs: the hosts are OpenSSH's sshds, the devices speak their protocol.

Nothing of the simulator's own ways is used: lumctl has an inventory with addresses, an SSH configuration and known
hosts, and no socket of the simulator. Host readings and mesh controllers are the simulator's answers behind these.
"""

import os
import re
import sys
from collections.abc import Callable

from job_coordinator import JOB
from running_jobs import RunningJob
from sshds import Sshds

from lumctl.inventory.load import load_inventory
from lumctl.training.agent.folder import holder, private_folder

AGENT = (sys.executable, "-P", "-m", "lumctl.training.agent")


class RackJob(RunningJob):
    """A running job whose hosts are reached over OpenSSH."""

    target = "rack"

    def __init__(self, require_program: Callable[[str], str], **more: object) -> None:
        self._require_program = require_program
        super().__init__(**{"agent": list(AGENT), "folder": None, **more})

    def _aim(self) -> None:
        simulated = self.sim.endpoints()
        self.sshds = Sshds(self.home / "s", self.inventory.hosts, self.sim.control, self._require_program)
        self._stack.callback(self.sshds.close)
        text = self.inventory.path.read_text()
        for device in self.inventory.devices.values():
            text = text.replace(device.address, simulated.devices[device.id].address)
        text = text.replace("    user: lumctl\n", f"    config_file: {self.sshds.config}\n")
        # Their addresses are aliases that only the configuration of ssh knows.
        text = re.sub(r"^  - name: h.*$", r'\g<0>\n    address: "at-{name}"', text, flags=re.MULTILINE)
        with self.sshds.config.open("a") as config:
            config.writelines(f"Host at-{host}\n  HostName {at}\n" for host, at in self.sshds.addresses.items())
        self.inventory.path.write_text(text)
        self.inventory = load_inventory(self.inventory.path)

    def _marks(self) -> set[bytes]:
        return {*super()._marks(), *(os.fsencode(f"HOME={self.sshds.home(host)}") for host in self.sshds.addresses)}

    def log(self) -> str:
        """What all workers have printed, and what was narrated last."""
        found = sorted(each for host in self.sshds.addresses for each in self.sshds.home(host).rglob("*.log"))
        return "\n".join([super().log(), *(f"{path}: {path.read_text()[-1500:]}" for path in found)])

    def agent(self, host: str) -> int | None:
        """The process that is the agent of a host."""
        return holder(private_folder(self.sshds.home(host) / ".lumctl" / "jobs" / JOB))
