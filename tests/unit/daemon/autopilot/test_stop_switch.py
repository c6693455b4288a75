"""The stop switch: one file anywhere stops, and what cannot be looked at stops as well."""

import os
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from lumctl.daemon.autopilot import stop_switch
from lumctl.daemon.autopilot.journal import stopped_by_anybody
from lumctl.store import store_at


@pytest.fixture(autouse=True)
def _own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in ("run", "state"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_nothing_stops_at_first(tmp_path: Path):
    assert stop_switch.thrown(stop_switch.places(["r1"], [tmp_path / "store"])) is None


@pytest.mark.parametrize("which", range(4))
def test_any_one_file_stops(tmp_path: Path, which: int):
    own = [
        p for p in stop_switch.places(["r1"], [tmp_path / "store"], alone=True) if p.parent.parent != stop_switch.SYSTEM
    ]
    path = (*own, stop_switch.places([])[0])[which]
    assert not stop_switch.throw([path], "ops")[0].trouble
    assert f"by the file {path} (ops)" == stop_switch.thrown(stop_switch.places(["r1"], [tmp_path / "store"]))
    if which < 3:
        assert stop_switch.thrown(stop_switch.places(["r2"], [tmp_path / "other"])) is None
    assert [each.way for each in stop_switch.release(stop_switch.places(["r1"], [tmp_path / "store"]))] == [str(path)]
    assert stop_switch.thrown(stop_switch.places(["r1"], [tmp_path / "store"])) is None


def test_a_place_that_cannot_be_made_hinders_no_other(tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = stop_switch.throw([tmp_path / "file" / "r1", tmp_path / "well" / "r1"], "ops")
    assert [bool(each.trouble) for each in done] == [True, False]


def test_what_cannot_be_looked_at_stops(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def denied(_path: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "lstat", denied)
    assert "cannot be checked: Permission denied" in str(stop_switch.thrown([tmp_path / "r1"]))


def test_a_daemon_that_no_other_way_reaches_is_ended():
    with subprocess.Popen(["sleep", "300"]) as process:
        assert stop_switch.end_daemon(process.pid).trouble == ""
        assert process.wait() == -signal.SIGTERM
    assert stop_switch.end_daemon(process.pid).trouble == "No such process"


def test_one_that_does_not_end_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stop_switch, "ENDS_S", 0.05)
    with subprocess.Popen(["sleep", "300"]) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        assert stop_switch.end_daemon(process.pid).trouble == "it has not ended within 0.05 s"
        process.kill()


def test_a_stop_in_the_journal_alone_stops_the_recovery_of_a_job_on_another_machine(tmp_path: Path):
    with closing(store_at(str(tmp_path / "store"), rack="r1")) as store:
        assert stopped_by_anybody("r1", store) is None
        store.journal.remark("autopilot", {"event": "stop", "comment": "smoke"}, at=1.0, who="ops@elsewhere")
        assert stopped_by_anybody("r1", store) == "by ops@elsewhere: smoke"
        store.journal.remark("autopilot", {"event": "start"}, at=2.0, who="ops@elsewhere")
        assert stopped_by_anybody("r1", store) is None


@pytest.mark.parametrize(("who", "awaited"), [("autopilot: policy p on m", 1), ("job run llm by me@m", 1), ("me@m", 0)])
def test_whoever_stops_waits_for_runs_that_no_person_started_by_hand(tmp_path: Path, who: str, awaited: int):
    words = ("kind", "target", "title", "plan_digest", "inventory_digest")
    with closing(store_at(str(tmp_path / "store"), rack="r1")) as store:
        lease = store.leases.acquire("r1", who, term_s=30.0, now=1.0)
        store.runs.begin(lease, {**dict.fromkeys(words, "swap"), "who": who}, {"digest": "d", "id": "p"}, now=1.0)
        assert len(stop_switch.own_runs(store, now=2.0)) == awaited
