"""The stop switch: one file anywhere stops, and what cannot be looked at stops as well."""

import os
from pathlib import Path

import pytest

from lumctl.autopilot import switch


@pytest.fixture(autouse=True)
def _own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in ("run", "state"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_nothing_stops_at_first(tmp_path: Path):
    assert switch.thrown(switch.places(["r1"], [tmp_path / "store"])) is None


@pytest.mark.parametrize("which", range(4))
def test_any_one_file_stops(tmp_path: Path, which: int):
    own = [p for p in switch.places(["r1"], [tmp_path / "store"], alone=True) if p.parent.parent != switch.SYSTEM]
    path = (*own, switch.places([])[0])[which]
    assert not switch.throw([path], "ops")[0].trouble
    assert f"by the file {path} (ops)" == switch.thrown(switch.places(["r1"], [tmp_path / "store"]))
    if which < 3:
        assert switch.thrown(switch.places(["r2"], [tmp_path / "other"])) is None
    assert [each.way for each in switch.release(switch.places(["r1"], [tmp_path / "store"]))] == [str(path)]
    assert switch.thrown(switch.places(["r1"], [tmp_path / "store"])) is None


def test_a_place_that_cannot_be_made_hinders_no_other(tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = switch.throw([tmp_path / "file" / "r1", tmp_path / "well" / "r1"], "ops")
    assert [bool(each.trouble) for each in done] == [True, False]


def test_what_cannot_be_looked_at_stops(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def denied(_path: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "lstat", denied)
    assert "cannot be looked for: Permission denied" in str(switch.thrown([tmp_path / "r1"]))
