"""A drill: real training on a simulated rack of its own, of which nothing is left."""

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from campaigning import campaign

from lumctl.cli.drill import Drill, _remove, drilling
from lumctl.errors import UnreachableError
from lumctl.inventory.load import example, load_inventory
from lumctl.training.agent import open_agent
from lumctl.training.coordinator.workers import JobWorker

WITHIN_S = 120.0


@pytest.fixture
def runtime(monkeypatch):
    """A private runtime folder with a short path."""
    folder = Path(tempfile.mkdtemp(prefix="drill-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@campaign
@pytest.mark.timeout(300)
def test_a_rank_and_its_gpu_are_replaced_in_a_drill_of_which_nothing_is_left(runtime):
    with drilling(load_inventory(example("ring4")), "train", standby=False) as drill:
        drill.settle()
        assert [path.name for path in runtime.rglob("token")] == ["token"]
        victim = drill.coordinator.state.placement[1]
        timeline = drill.strike([1], lost=True)
        drill.wait(lambda: not drill.coordinator.state.under_examination, "the end of the run", WITHIN_S)
        told = drill.coordinator.state.recoveries[-1]
        assert told.replaced.keys() == {victim}
        assert drill.store.runs.get(told.run).state == "done"
        assert timeline.at("detected") < timeline.at("circuits") < timeline.at("verified") < timeline.at("step")
    assert [path for path in runtime.rglob("*") if path.is_file()] == []


def test_a_folder_in_which_an_agent_is_at_work_is_left(runtime, caplog):
    folder = runtime / "job"
    line = open_agent(folder / "h0")
    line.receive()
    _remove(folder)
    assert (folder / "h0").exists()
    assert "an agent already serves" in caplog.text
    line.send({"ask": "quit"})
    while line.receive() is not None:
        pass
    line.close()
    _remove(folder)
    assert not folder.exists()


@pytest.mark.parametrize(
    "victim", [JobWorker("h1-a#1", "h1-a", "h1"), JobWorker("h1-a#1", "h1-a", "h1", pid=1, alive=False)]
)
def test_who_has_no_process_is_not_killed(victim, monkeypatch):
    struck = []
    monkeypatch.setattr(f"{drilling.__module__}.os.kill", lambda *what: struck.append(what))
    state = SimpleNamespace(
        recoveries=[], workers={victim.name: victim}, group=SimpleNamespace(members={0: victim.name})
    )
    drill = Drill("train", None, None, None, None, SimpleNamespace(state=state), None)
    with pytest.raises(UnreachableError, match="worker h1-a#1 has no process"):
        drill.strike([0], lost=False)
    assert struck == []
