"""Hosts and devices of the simulator whose every word carries what a terminal obeys."""

import json
import os
import re
from pathlib import Path

CLIPBOARD = "\x1b]52;c;aGk=\x07"
CURSOR = "\x1b[77;77H"
C1 = "\x9b5m\x9d52;c;aGk=\x9c"
OVERRIDE = "\u202e\u2066\u200b"
RAW = f"{CLIPBOARD}V{CURSOR}{C1}{OVERRIDE}\x7f\x08\r!"
XML = f"{C1}{OVERRIDE}\x7f!"
"""What a document of XML may hold of it."""
_XML_TAGS = "product_name|serial|uuid|process_name|vbios_version|gpu_recovery_action"


def install():
    """Patch the simulator's hosts and devices.

    Neighbours lie about their names once the file ``$HOSTILE_NAMES`` is there: until then circuits can be proved.
    """
    from lumctl.sim import control
    from lumctl.sim.hosts import commands, module
    from lumctl.sim.switches import scpi

    tools = dict(commands._COMMANDS)

    def smi(world, host, arguments, now):
        said = tools["nvidia-smi"](world, host, arguments, now)
        text = re.sub(rf"<({_XML_TAGS})>([^<]*)<", rf"<\1>\2{XML}<", said.stdout)
        return said._replace(stdout=text)

    def dmesg(world, host, arguments, now):
        pci = next(iter(world.gpus(host))).gpu.pci
        lines = (
            f"[ 100.000001] NVRM: Xid (PCI:{pci}): 79, GPU has fallen off {RAW} the bus",
            f"[ 100.000002] NVRM: Xid {RAW}",
            f"[ 100.000003] mlx5_core 0000:41:00.0 enp65s0f0: firmware fatal error {RAW}",
        )
        said = tools["dmesg"](world, host, arguments, now)
        return said._replace(stdout="\n".join((said.stdout.rstrip("\n"), *lines, "")))

    def lldpctl(world, host, arguments, now):
        said = tools["lldpctl"](world, host, arguments, now)
        heard = json.loads(said.stdout)["lldp"].get("interface", [])
        for each in heard if isinstance(heard, list) else [heard]:
            for entry in each.values():
                if Path(os.environ["HOSTILE_NAMES"]).exists():
                    entry["chassis"] = {f"{name}{RAW}": told for name, told in entry["chassis"].items()}
                    entry["port"]["descr"] += RAW
        return said._replace(stdout=json.dumps({"lldp": {"interface": heard}}))

    def ethtool(world, host, arguments, now):
        said = tools["ethtool"](world, host, arguments, now)
        return said._replace(stdout=re.sub(r"(Vendor \w+\s*: .*)", lambda found: found[1] + RAW, said.stdout))

    commands._COMMANDS.update({"nvidia-smi": smi, "dmesg": dmesg, "lldpctl": lldpctl, "ethtool": ethtool})
    vendor = module.vendor
    module.vendor = lambda view: [(name, text + XML) for name, text in dict(vendor(view)).items()]
    _with(scpi.ScpiSwitch, "_answer", lambda said, _, command: said + RAW if command.header == "*IDN?" else said)
    for name in ("_mesh_identify", "_mesh_write"):
        _with(control.Control, name, lambda said, *_: said | {"text": said["text"] + RAW})


def _with(owner, name, change):
    """Change what a method returns."""
    before = getattr(owner, name)
    setattr(owner, name, lambda self, *words: change(before(self, *words), self, *words))
