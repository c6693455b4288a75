"""Two jobs that change their phases on one device at random times: no change of one touches what the other uses.

Two hundred changes of each by default, 10,000 with LUMCTL_CAMPAIGN set. The device's own log of writes is the witness.
"""

import os
import random
import re
import threading
from contextlib import closing, contextmanager

import pytest
from gateways import process
from permitted_phases import permit

from lumctl.devices.gateway.phases import PhaseGateway
from lumctl.devices.types import PucState
from lumctl.inventory.load import example, load_inventory
from lumctl.sim.launch import launch
from lumctl.store import store_at

CHANGES = 10_000 if "LUMCTL_CAMPAIGN" in os.environ else 200
FREE, BAR, CROSS = "-", str(PucState.BAR), str(PucState.CROSS)
_NUMBER = re.compile(r"\d+")
_HEAD = re.compile(r"^\d+ PUCs: ")


def joins(first):
    """Three phases of a job on four ports."""
    a, b, c, d = range(first, first + 4)
    return [
        {a: str(b), b: FREE, c: str(d), d: FREE},
        {a: str(c), b: str(d), c: FREE, d: FREE},
        {a: str(d), b: str(c), c: FREE, d: FREE},
    ]


def pucs(first):
    """Three phases of a job on four PUCs."""
    values = ([BAR, BAR, CROSS, CROSS], [CROSS, BAR, BAR, CROSS], [BAR, CROSS, CROSS, BAR])
    return [dict(zip(range(first, first + 4), each, strict=True)) for each in values]


class Shared:
    """One device that two jobs share, behind a gateway process."""

    def __init__(self, rack, device, phases, sim, folder, url):
        self.rack, self.device, self.sim, self.folder = rack, device, sim, folder
        self.phases = {
            job: {name: {device: states} for name, states in zip("ABC", phases(first), strict=True)}
            for job, first in (("one", 0), ("two", 4))
        }
        with closing(store_at(url, files=folder, rack=rack)) as store:
            self.plans = {job: permit(store, job, phases, rack, now=0.0).id for job, phases in self.phases.items()}
        self.read = sim.writes()[-1].number if sim.writes() else 0
        self.written = {"one": [], "two": []}
        """By job, what each write of the device's log changed."""
        self._lock = threading.Lock()

    def follow(self):
        """Follow the device's log: each write belongs to one job."""
        with self._lock:
            for write in self.sim.writes(self.read):
                assert write.number == self.read + 1
                self.read = write.number
                of = {int(number) // 4 for number in _NUMBER.findall(_HEAD.sub("", write.what))}
                assert of in ({0}, {1}), f"a write touches both jobs: {write}"
                self.written["two" if of == {1} else "one"].append(write.what)

    def changes(self, job, failures):
        """Change the light of a job at random."""
        gateway = PhaseGateway.at(self.folder / "r.sock", rack=self.rack, target="sim")
        dice, phase = random.Random(job), ""  # noqa: S311 - no secret
        try:
            for number in range(CHANGES):
                phase = dice.choice([each for each in "ABC" if each != phase])
                gateway.light(job, self.plans[job], self.device, phase)
                if number % 100 == 0:
                    self.follow()
        except Exception as error:  # noqa: BLE001 - it is shown in the test's thread
            failures.append(f"{job}: {error!r}")
        finally:
            gateway.close()


@contextmanager
def shared(kind, folder):
    """A switch of ``rails``, or the mesh of ``prototype``."""
    rack, device, phases = ("rails", "rail0", joins) if kind == "switch" else ("prototype", "mesh", pucs)
    inventory, url = load_inventory(example(rack)), f"sqlite:///{folder}/lumctl.db"
    with launch(inventory, folder=folder / "sim", tied=True) as sim:
        order = {"inventory": str(inventory.path), "sim": str(sim.folder), "store": url}
        with process({**order, "socket": str(folder / "r.sock"), "rack": rack}):
            yield Shared(rack, device, phases, sim, folder, url)


@pytest.mark.timeout(3600 if "LUMCTL_CAMPAIGN" in os.environ else 300)
@pytest.mark.parametrize("kind", ["switch", "mesh"])
def test_no_change_of_one_job_touches_the_light_of_the_other(tmp_path_factory, kind):
    failures = []
    with shared(kind, tmp_path_factory.mktemp("g")) as device:
        threads = [threading.Thread(target=device.changes, args=(job, failures)) for job in device.plans]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        device.follow()
    assert failures == []
    # As many writes as changes: each one moved the states of its own job, and nothing else ever did.
    assert {job: len(written) for job, written in device.written.items()} == dict.fromkeys(device.plans, CHANGES)
