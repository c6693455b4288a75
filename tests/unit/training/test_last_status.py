"""How a job stood last: whole or not at all, and private."""

import json
import stat

import pytest

from lumctl.training.last_status import KEPT, ended, keep, kept, recoveries_before

STOOD = {"state": "stopped", "done": 200, "recoveries": [{"cause": "h1-a: dies"}]}


def test_it_is_kept_for_this_user_only_and_replaced_whole(tmp_path):
    keep(tmp_path, {**STOOD, "state": "running"})
    assert ended(tmp_path) is None
    assert recoveries_before(tmp_path) == tuple(STOOD["recoveries"])
    keep(tmp_path, STOOD)
    assert kept(tmp_path) == ended(tmp_path) == STOOD
    assert recoveries_before(tmp_path) == ()  # another run of it has nothing to do with them
    assert stat.S_IMODE((tmp_path / KEPT).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [KEPT]


def test_what_cannot_be_written_leaves_what_was(tmp_path):
    keep(tmp_path, STOOD)
    with pytest.raises(TypeError):
        keep(tmp_path, {"state": object()})
    assert kept(tmp_path) == STOOD
    assert [path.name for path in tmp_path.iterdir()] == [KEPT]
    with pytest.raises(OSError, match="No such file"):
        keep(tmp_path / "none", STOOD)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", json.dumps({"schema": "lumctl/job-kept/v1", "status": 1})])
def test_what_is_none_of_ours_counts_as_nothing(tmp_path, text):
    (tmp_path / KEPT).write_text(text)
    assert kept(tmp_path) is None
    assert ended(tmp_path) is None
    assert recoveries_before(tmp_path) == ()
