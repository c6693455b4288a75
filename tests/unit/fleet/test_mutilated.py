"""Whatever a host prints: no exception, and nothing is well because of garbage.

Answers of our own and captures of real hardware are mutilated, taken by their probes, and judged. A component may then
be ok only if what makes it so still stands in the text, which is looked up there without our parsers.
"""

import copy
import math
import os
import random
import re
from collections.abc import Mapping

import pytest

from lumctl.fleet.bundle.session import as_xml
from lumctl.fleet.probe_output import Gathered, ProbeAnswer, visible
from lumctl.fleet.probes import probes_for
from lumctl.fleet.readings import HostSnapshot, ProbeOutcome, ProbeStatus, Snapshot
from lumctl.health.evaluation import evaluate
from lumctl.health.states import State
from lumctl.inventory.load import load_inventory
from lumctl.inventory.wiring import circuits_of, initial_assignment

ROUNDS = 10_000 if os.environ.get("LUMCTL_CAMPAIGN") else 500
SEED = int(os.environ.get("LUMCTL_CAMPAIGN_SEED", "3"))
INVENTORY = """\
lumctl: 1
racks: {r: {}}
hosts:
  - name: h1
    accelerators:
      - {id: "g[0-1]", model: B200, memory_gib: 180, pci: ["0000:1b:00.0", "0000:4c:00.0"]}
      - {id: "g[2-3]", model: A100, memory_gib: 80, pci: ["0000:01:00.0", "0000:00:1e.0"], role: spare}
devices: [{id: mesh, kind: mesh, driver: smartlight, address: "m:1", geometry: {columns: 3, rows: 2}}]
transponders: [{id: "t[0-1]", accelerator: "g[0-1]", interface: [eth2, eth3], device: mesh, port: [0, 5]}]
jobs: [{name: j, ranks: "g[0-1]", links: [{kind: pairs, pairs: [[0, 1]]}]}]
"""
BUSES = {"g0": "00000000:1B:00.0", "g1": "00000000:4C:00.0", "g2": "00000000:01:00.0", "g3": "00000000:00:1E.0"}
HEARD = """\
{"lldp": {"interface": [
  {"eth2": {"via": "LLDP", "age": "0 day, 00:00:04", "chassis": {"h1": {}}, "port": {"descr": "eth3"}}},
  {"eth3": {"via": "LLDP", "age": "0 day, 00:00:04", "chassis": {"h1": {}}, "port": {"descr": "eth2"}}}]}}
"""
STATES = "".join(
    f"/sys/class/net/{name}/operstate:{state}\n/sys/class/net/{name}/carrier_changes:2\n"
    for name, state in (("lo", "unknown"), ("eth2", "up"), ("eth3", "up"))
)
NVLINK = "GPU 0: NVIDIA B200 (UUID: GPU-0b200000-0000-4000-8000-000000000001)\n\t Link 0: 53.125 GB/s\n"
ERRORS = NVLINK.replace("53.125 GB/s", "Effective BER: 15e-255\n\t Link 0: Effective Errors: 0")
TRAFFIC = NVLINK.replace("53.125 GB/s", "Data Tx: 900 KiB\n\t Link 0: Data Rx: 800 KiB")
LOG = "[   12.500000] mlx5_core 0000:9c:00.0 eth2: Link up\n"
LOST = "[   99.500000] NVRM: Xid (PCI:0000:1b:00): 79, pid=7, GPU has fallen off the bus.\n"
MOUNTS = "/dev/sda1 / ext4 rw,relatime,errors=remount-ro 0 0\nproc /proc proc rw,nosuid 0 0\n"
DISKS = (
    "Filesystem     Type   Inodes  IUsed     Used    Avail Mounted on\n"
    "/dev/sda1      ext4 16777216 717083 35164660 71226252 /\n"
)
FABRIC_LOG = """\
1000.0000000000 1970-01-01T00:16
[Jan 01 1970 00:16:01] [INFO] [tid 4242] Fabric Manager initialization completed
"""
SERVICES = """\
Id=nvidia-fabricmanager.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
"""
CAPACITY = "/proc/meminfo:MemTotal:       2113411308 kB\n/sys/devices/system/cpu/online:0-223\n"
IN_CAPTURES = {
    "nvidia-smi-q-x": "gpu",
    "nvidia-smi-nvlink-s": "nvlink",
    "nvidia-smi-session": "nvlink",
    "dmesg": "kernel",
    "ethtool-m": "optics:eth2",
    "sys-class-infiniband": "infiniband",
}
PROBES = {probe.name: probe for probe in probes_for(("eth2", "eth3"), sudo=False)}


@pytest.fixture(scope="module")
def rack(tmp_path_factory, answer):
    """One host of which every probe was well, and how it is judged with one answer in another's place."""
    path = tmp_path_factory.mktemp("mutilated") / "lumctl.yaml"
    path.write_text(INVENTORY)
    return Rack(
        load_inventory(path),
        {
            "gpu": answer("healthy.xml"),
            "nvlink": NVLINK,
            "nvlink:errors": ERRORS,
            "nvlink:traffic": TRAFFIC,
            "kernel": LOG,
            "net": STATES,
            "infiniband": answer("infiniband.txt"),
            "counters": answer("counters.txt"),
            "lldp": HEARD,
            "mounts": MOUNTS,
            "disks": DISKS,
            "clock": "1000.250000000\n".zfill(21),
            "fabric_log": FABRIC_LOG,
            "crashes": "find: '/sys/fs/pstore': No such file or directory\n",
            "services": SERVICES,
            "capacity": CAPACITY,
            "adapters": "/sys/class/net/eth2/device/uevent:PCI_SLOT_NAME=0000:9c:00.0\n",
            "optics:eth2": answer("sfp.txt"),
            "optics:eth3": answer("sfp.txt"),
        },
    )


class Rack:
    def __init__(self, inventory, answers):
        self.inventory = inventory
        self.answers = answers
        self.circuits = circuits_of(inventory, initial_assignment(inventory))
        self.outcomes, self.gathered = {}, Gathered(booted_at=900.0)
        for name in PROBES:
            self.outcomes[name] = self.take(name, answers[name], 0, self.gathered)

    def take(self, name, text, status, gathered):
        verdict, detail = PROBES[name].take(ProbeAnswer(status, text), 1000.0, gathered)
        return ProbeOutcome(name, verdict, 1000.0, 0.1, detail)

    def judged(self, name, text, status=0):
        """The outcome of a probe, what was gathered, and the verdicts, where a probe's first answer is this text."""
        gathered = copy.copy(self.gathered)
        for field, value in vars(Gathered()).items():
            if field in FIELDS[name.partition(":")[0]]:
                setattr(gathered, field, value)
        if name in {"nvlink:errors", "nvlink:traffic"}:
            self.take("nvlink", self.answers["nvlink"], 0, gathered)
        outcome = self.take(name, text, status, gathered)
        PROBES[name].again(1001.0, gathered)
        return outcome, gathered, self.report(gathered, {**self.outcomes, name: outcome})

    def report(self, gathered, outcomes):
        seen = HostSnapshot(
            host="h1",
            taken_at=1000.0,
            reachable=True,
            probes=outcomes,
            booted_at=gathered.booted_at,
            **visible(gathered, outcomes, None),
        )
        found = Snapshot(1000.0, 0.1, {"h1": seen})
        return evaluate(self.inventory, found, self.circuits, losses={}, devices={"mesh": None}, now=1002.0)


FIELDS: Mapping[str, set[str]] = {
    "gpu": {"gpus", "lost_gpus", "smi"},
    "nvlink": {"nvlinks"},
    "kernel": {"xids", "sxids", "nic_events", "host_events", "kernel"},
    "net": {"interfaces"},
    "infiniband": {"infiniband"},
    "counters": {"counters"},
    "lldp": {"neighbours"},
    "mounts": {"mounts"},
    "disks": {"disks"},
    "clock": {"clock"},
    "crashes": {"crashes"},
    "fabric_log": {"fabric_errors"},
    "services": {"services"},
    "capacity": {"capacity"},
    "adapters": {"adapters"},
    "optics": {"optics"},
}


def flip(data, chance):
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(data))
        data = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
    return data


def cut(data, chance):
    start, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:start] + data[end:] if chance.random() < 0.5 else data[start:end]


def truncated(data, chance):
    return data[: chance.randrange(len(data))]


def lines_shuffled(data, chance):
    lines = data.splitlines(keepends=True)
    for _ in range(chance.randint(1, 4)):
        a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(3):
            case 0:
                lines.insert(a, lines[b])
            case 1:
                lines[a], lines[b] = lines[b], lines[a]
            case 2 if len(lines) > 1:
                del lines[a]
    return b"".join(lines)


def garbage_inserted(data, chance):
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.randbytes(chance.randint(1, 40)) + data[at:]


def nuls_inserted(data, chance):
    at = chance.randrange(len(data) + 1)
    return data[:at] + bytes(chance.randint(1, 9)) + data[at + chance.randint(0, 9) :]


def huge_number(data, chance):
    numbers = list(re.finditer(rb"[0-9]+", data))
    if not numbers:
        return data
    found = chance.choice(numbers)
    huge = chance.choice([b"9" * 400, b"1e999", b"-1", b"18446744073709551616", b"NaN", b"inf", b"0x7fffffff"])
    return data[: found.start()] + huge + data[found.end() :]


def another_encoding(data, chance):
    text = data.decode("utf-8", "replace")
    return text.encode(chance.choice(["utf-16", "utf-32", "utf-7", "cp037"]), "replace")


def spoken_between(data, chance):
    lines = data.splitlines(keepends=True)
    other = chance.choice(
        ["sudo: unable to resolve host h1\n", LOST, STATES, HEARD, '<gpu id="0000:1b:00.0">', "{", "\r"]
    )
    lines.insert(chance.randrange(len(lines) + 1), other.encode())
    return b"".join(lines)


WAYS = (
    *(flip, cut, truncated, lines_shuffled, garbage_inserted),
    *(nuls_inserted, huge_number, another_encoding, spoken_between),
)


def mutilated(text, chance):
    data = text.encode()
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        data = chance.choice(WAYS)(data, chance) or b"\x00"
    return data.decode("utf-8", chance.choice(("replace", "replace", "surrogateescape")))


def check(name, text, status, judged):
    """What must hold of any answer."""
    outcome, gathered, report = judged
    assert len(outcome.detail) <= 200
    assert not outcome.detail or outcome.detail.isprintable()
    oracle = ORACLES.get(name.partition(":")[0])
    if oracle is not None:
        oracle(text, gathered, report)
    if outcome.status is not ProbeStatus.OK and name in NEEDED:
        assert report.hosts["h1"].state is not State.OK
    if name.startswith("optics") and outcome.status is ProbeStatus.OK and status == 0:
        check_module(text, gathered.optics[name.partition(":")[2]])


def check_gpus(text, gathered, report):
    for gpu in gathered.gpus:
        assert all(v is None or math.isfinite(v) for v in (gpu.temperature_c, gpu.power_w, gpu.memory_used_mib))
    for accelerator, bus in BUSES.items():
        if report.accelerators[accelerator].state is State.OK:
            assert bus.lower() in text.lower()
            assert re.search(r"<gpu_temp>\s*-?[0-9]{1,4}(\.[0-9]+)?(?![0-9])", text)
            assert re.search(r"<(used|dram_uncorrectable|total|double_bit)>\s*[0-9]|uncorrectable\w*>\s*[0-9]", text)
    if FAULT.search(text):
        assert report.accelerators["g0"].state is not State.OK


def check_interfaces(text, _gathered, report):
    for link, interface in (("t0", "eth2"), ("t1", "eth3")):
        if report.links[link].state is State.OK:
            assert re.search(rf"^/sys/class/net/{interface}/operstate:(up|unknown)\s*$", text, re.MULTILINE)


def check_neighbours(text, _gathered, report):
    if any(circuit.state is State.OK for circuit in report.circuits.values()):
        assert {"eth2", "eth3", "h1"} <= set(re.findall(r'"(\w+)"', text))


def check_log(text, _gathered, report):
    if LOST in text:
        assert report.accelerators["g0"].state is not State.OK


def check_module(text, reading):
    assert re.search("identifier", text, re.IGNORECASE)
    if reading.rx_power_dbm is not None:
        milliwatt = f"{10 ** (reading.rx_power_dbm / 10):.4f}"
        told = (f"{reading.rx_power_dbm:.2f} dBm", milliwatt, "inf dBm", '"rx_power"')
        assert any(words in text for words in told)


ORACLES = {"gpu": check_gpus, "net": check_interfaces, "lldp": check_neighbours, "kernel": check_log}
NEEDED = {"gpu", "kernel", "net", "lldp", "optics:eth2", "optics:eth3"}
"""The probes without which something of this inventory cannot be judged."""
FAULT = re.compile(
    r'<gpu id="00000000:1B:00\.0">(?:(?!</gpu>).)*\n\t\t<gpu_recovery_action>Reset</gpu_recovery_action>\n\t\t<pci>',
    re.DOTALL,
)
"""A fault where it belongs: lines that are swapped may take it elsewhere."""


def originals(rack, answer, captures):
    """The answers to mutilate, by probe: ours, variants with a fault in them, and captures where they are at hand."""
    yield from rack.answers.items()
    yield "kernel", LOG + LOST + answer("nic.log") + answer("kernel.log")
    yield "gpu", answer("healthy.xml").replace("action>None<", "action>Reset<", 1)
    yield from (("gpu", answer(name)) for name in ("h100.xml", "k80.xml"))
    yield from ((SESSION, text) for text in (session(answer), session(answer, FAULTY_ROW)))
    yield from (("optics:eth2", answer(f"{name}")) for name in ("qsfp.txt", "cmis8.txt", "cmis8.json", "sfp.json"))
    yield from (("optics:eth2", answer("copper.txt")), ("nvlink", answer("nvlink-5.txt")))
    yield from (("nvlink:errors", answer(f"nvlink-errors{generation}.txt")) for generation in ("", "-5"))
    yield from (("lldp", answer("lldp.json")), ("net", answer("net.txt")))
    for path in captures:
        probe = next(probe for prefix, probe in IN_CAPTURES.items() if path.name.startswith(prefix))
        yield probe, path.read_text()
        if probe == "infiniband":
            yield "counters", path.read_text()


SESSION = "session"
"""``nvidia-smi -q`` for people, which a capture's reader puts into XML before its probe takes it."""
FAULTY_ROW = "    GPU Recovery Action                   : Reset\n"
FAULTY = re.compile(rf"^GPU 00000000:1B:00\.0 *\n(?:(?!GPU 0).*\n){{1,12}}{FAULTY_ROW}    PCI\n", re.MULTILINE)
"""A faulty row where it belongs, under the heading of its GPU."""


def session(answer, row=""):
    """A text of the four GPUs; the first one with a faulty row in place of its own."""
    gpu, head = answer("smi-text-gpu.txt"), answer("smi-text-head.txt")
    gpus = [gpu.format(address=address, minor=number) for number, address in enumerate(BUSES.values())]
    gpus[0] = gpus[0].replace(row.replace("Reset", "None"), row) if row else gpus[0]
    return head.format(count=len(gpus)) + "".join(gpus)


def test_all_is_well_before_anything_is_mutilated(rack):
    report = rack.report(rack.gathered, rack.outcomes)
    assert {outcome.status for outcome in rack.outcomes.values()} == {ProbeStatus.OK}
    assert [report.accelerators[name].state for name in ("g0", "g1")] == [State.OK] * 2
    assert {h.state for kind in (report.links, report.circuits) for h in kind.values()} == {State.OK}


def test_mutilated_answers(rack, answer, captures_at_hand):
    texts = list(originals(rack, answer, captures_at_hand))
    chance = random.Random(SEED)  # noqa: S311 - a seeded sample, no secret
    for number in range(ROUNDS):
        name, original = texts[number % len(texts)]
        text = mutilated(original, chance)
        status = chance.choice((0, 0, 0, 1, 127))
        is_faulty = name == SESSION and FAULTY.search(text) is not None
        if name == SESSION:
            name, text = "gpu", as_xml(text)
        try:
            judged = rack.judged(name, text, status)
            check(name, text, status, judged)
            assert not is_faulty or judged[2].accelerators["g0"].state is not State.OK
        except Exception as error:
            error.add_note(f"round {number}, {name}, status {status}: {text[:2000]!r}")
            raise


@pytest.mark.parametrize("name", PROBES)
def test_nothing_but_garbage_is_never_well(rack, name):
    chance = random.Random(SEED)  # noqa: S311 - a seeded sample, no secret
    for _ in range(ROUNDS // 50):
        text = chance.randbytes(chance.randint(1, 4000)).decode("utf-8", "replace")
        outcome, *_ = rack.judged(name, text)
        assert outcome.status is not ProbeStatus.OK


@pytest.mark.parametrize("spoil", [lambda _: "", lambda block: "\x00" * len(block), lambda block: block[::-1]])
def test_a_component_whose_text_is_destroyed_is_never_ok(rack, spoil):
    for name, component, start, end in (
        ("gpu", "g0", '<gpu id="00000000:1B', "</gpu>"),
        ("gpu", "g1", '<gpu id="00000000:4C', "</gpu>"),
        ("gpu", "g0", "<temperature>", "</temperature>"),
        ("gpu", "g0", "<ecc_errors>", "</ecc_errors>"),
        ("net", "t0", "/sys/class/net/eth2/operstate", "up\n"),
        ("net", "t1", "/sys/class/net/eth3/operstate", "up\n"),
    ):
        text = rack.answers[name]
        first = text.index(start)
        last = text.index(end, first) + len(end)
        _, _, report = rack.judged(name, text[:first] + spoil(text[first:last]) + text[last:])
        health = {**report.accelerators, **report.links}[component]
        assert health.state is not State.OK, component
