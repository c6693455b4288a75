"""What was done is done again: every recorded run, replayed on a simulator, ends in the recorded state.

CI does a seeded sample; ``LUMCTL_CAMPAIGN=1`` does a thousand runs, over five racks.
"""

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Inventory
from lumctl.runbook.document import make
from lumctl.runbook.lint import lint
from lumctl.runbook.replay import replay_on_stage
from lumctl.runbook.stage import Stage, staged
from lumctl.runbook.yaml_text import dump, load
from lumctl.store import Store

WHOLE = bool(os.environ.get("LUMCTL_CAMPAIGN"))
SEED = int(os.environ.get("LUMCTL_SEED", "6"))
RACKS = {
    # rack: runs in CI, runs of the campaign
    "prototype": (8, 400),
    "timed": (3, 250),
    "switched": (4, 160),
    "golden": (0, 160),
    "rack64": (0, 30),
}
_ENOUGH = 100
"""From how many runs on each kind of them is surely among those that were drawn."""
pytestmark = pytest.mark.timeout(3600 if WHOLE else 120)


def inventory_of(name: str, folder: Path) -> Inventory:
    """A rack whose light is waited for briefly; ``timed`` is the prototype with a mesh that reverts by itself."""
    if name == "golden":
        text = (Path(__file__).parents[1] / "golden" / "rack.yaml").read_text().partition("thresholds:")[0]
    else:
        text = example("prototype" if name == "timed" else name).read_text()
    if name == "timed":
        text = text.replace("driver: smartlight", "driver: sim-mesh")
    path = folder / f"{name}.yaml"
    path.write_text(text + "\nthresholds: {light_deadline_s: 0.6}\n")
    return load_inventory(path)


@pytest.mark.parametrize("name", [name for name, (sample, _) in RACKS.items() if WHOLE or sample])
def test_every_recorded_run_is_replayed_to_the_recorded_end(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorder_of: Any, capsys: Any
) -> None:
    monkeypatch.setenv("BMC_PASSWORD", "secret")
    count = RACKS[name][1 if WHOLE else 0]
    inventory = inventory_of(name, tmp_path)
    began = time.monotonic()
    with staged(inventory) as original, staged(inventory) as copy, original.play() as context:
        recorder = recorder_of(inventory, original.sim, context, SEED)
        recorder.record(count)
        recorded_s = time.monotonic() - began
        seen = Counter(f"{run.kind} {run.state}" for run in recorder.store.runs.all())
        different = replayed(recorder.store, inventory, copy)
    took_s = time.monotonic() - began
    if WHOLE:
        with capsys.disabled():
            told = f"{count} runs in {recorded_s:.0f} s, replayed in {took_s - recorded_s:.0f} s"
            print(f"\n{name}: {told}\n  {dict(seen)}\n  {dict(recorder.did)}\n  {different}")  # noqa: T201 - the account
        assert seen["swap rolled-back"] + seen["swap refused"] > 0
        drawn = {"swap", "rollback", "fabric"} if count < _ENOUGH else {"swap", "rollback", "fabric", "set", "ack"}
        assert drawn <= {run.split()[0] for run in seen}
    assert not different, different[:5]


def replayed(store: Store, inventory: Inventory, stage: Stage) -> list[str]:
    """Replay every run, by its text as a file has it; those that ended another way, with how."""
    different = []
    for run in reversed(store.runs.all()):
        text = dump(make(run, store, inventory))
        problems = lint(text, run.id, inventory)
        if problems:
            different.append(f"{run.id}: {problems[0]}")
        result = replay_on_stage(load(text, run.id), stage, progress=lambda _line: None)
        if not result.identical:
            different.append(f"{run.id} ({run.state}): {result.first_difference}")
    return different
