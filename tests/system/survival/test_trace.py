"""A trace of system calls shows each intent synced to disk before anything is sent to its device."""

import json
import subprocess
import sys

import pytest
from crash_fixture import WORKER, shared
from racks import rack_of
from syscalls import OPTIONS, Trace, too_early

from lumctl.change import apply, to_document
from lumctl.change.plan import Do
from lumctl.errors import ExitCode
from lumctl.swap import plan_rollback

SHELF = """\
  - {id: shelf, kind: chassis, driver: sim-transponder, address: "shelf.prototype.example:1"}
"""
"""Modules whose chassis is asked in plain words: what is sent to a host is encrypted."""


def with_shelf(text):
    text = shared(text).replace("    settle_ms: 5\n", f"    settle_ms: 5\n{SHELF}")
    for lane in "ab":
        name = f"  - id: s[0-3]-gpu0-{lane}\n"
        text = text.replace(name, f"{name}    module: shelf/och-[0-3]-{lane}\n")
    return text


@pytest.fixture(scope="module")
def rack(tmp_path_factory):
    yield from rack_of("prototype", tmp_path_factory.mktemp("traced"), edited=with_shelf)


@pytest.fixture
def traced(rack, require_program, tmp_path):
    """Apply a plan under strace: the newest run, and the trace."""
    program, file = require_program("strace"), tmp_path / "trace"
    tried = subprocess.run([program, "-f", "-o", file, "true"], check=False, capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"the kernel lets nobody trace: {tried.stderr.strip()}")

    def apply(plan, **how):
        rack.store.runs.save_plan(to_document(plan))
        order = {
            "inventory": str(rack.inventory.path),
            "folder": str(rack.folder),
            "place": rack.place,
            "plan": plan.id,
            **how,
        }
        command = [program, *OPTIONS, "-o", file, sys.executable, WORKER]
        said = subprocess.run(command, input=json.dumps(order), check=True, capture_output=True, text=True).stdout
        status = json.loads(said.splitlines()[-1])["status"]
        run = max(rack.store.runs.all(), key=lambda run: run.fence)
        seals = [entry.hash for entry in rack.store.journal.of_run(run.id)]
        with file.open(encoding="latin-1") as lines:
            return status, run, Trace.read(lines, seals)

    return apply


@pytest.fixture
def plan(rack):
    """A plan all of whose transmitters have to be switched."""
    for lane in ("s3-gpu0-a", "s3-gpu0-b"):
        rack.context.devices.transponder(lane).set_transmit(False)
    yield rack.lost()
    rack.clear()


def writes(rack, run, plan, kind):
    """For each step that writes a device: the hash of its entry of a kind, and what it sends."""
    back, seals, words = kind == "undo-intent", {}, {}
    steps = {step.id: step for step in plan.steps}
    for entry in rack.store.journal.of_run(run.id):
        step = steps.get(entry.step)
        if entry.kind != kind or step.do not in {Do.PROGRAM, Do.TRANSMIT}:
            continue
        seals[step.id] = entry.hash
        if step.do is Do.PROGRAM:
            words[step.id] = tuple((int(puc), was if back else to) for puc, was, to in step.data["changes"])
        else:
            on = step.data["enabled"] is not back
            words[step.id] = {"do": "transponder-laser", "device": step.data["transponder"], "on": on}
    return seals, words


def test_each_intent_and_each_undo_is_synced_before_its_device_is_written(rack, plan, traced):
    rack.sim.inject("mesh", "mesh-lying")
    status, run, trace = traced(plan)
    assert (status, run.state) == (ExitCode.ROLLED_BACK, "rolled-back")
    for kind in ("intent", "undo-intent"):
        seals, words = writes(rack, run, plan, kind)
        seen, early = too_early(trace, seals, words)
        assert sorted(seen) == sorted(words)
        assert len(seen) == 5
        assert early == []


def test_a_database_that_does_not_sync_is_found_out(rack, plan, traced):
    status, run, trace = traced(plan, sync="OFF")
    assert status == ExitCode.DONE
    seals, words = writes(rack, run, plan, "intent")
    seen, early = too_early(trace, seals, words)
    assert early == seen
    assert len(seen) == 5
    apply(rack.context, plan_rollback(rack.context, run))
