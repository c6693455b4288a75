"""How a job stood last: whole or not at all, and private."""

import json
import stat

import pytest

from lumctl.training.job_folder import STATUS, earlier_recoveries, ended_status, save_status, saved_status

STOOD = {"state": "stopped", "done": 200, "recoveries": [{"cause": "h1-a: dies"}]}


def test_it_is_kept_for_this_user_only_and_replaced_whole(tmp_path):
    save_status(tmp_path, {**STOOD, "state": "running"})
    assert ended_status(tmp_path) is None
    assert earlier_recoveries(tmp_path) == tuple(STOOD["recoveries"])
    save_status(tmp_path, STOOD)
    assert saved_status(tmp_path) == ended_status(tmp_path) == STOOD
    assert earlier_recoveries(tmp_path) == ()  # another run of it has nothing to do with them
    assert stat.S_IMODE((tmp_path / STATUS).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [STATUS]


def test_what_cannot_be_written_leaves_what_was(tmp_path):
    save_status(tmp_path, STOOD)
    with pytest.raises(TypeError):
        save_status(tmp_path, {"state": object()})
    assert saved_status(tmp_path) == STOOD
    assert [path.name for path in tmp_path.iterdir()] == [STATUS]
    with pytest.raises(OSError, match="No such file"):
        save_status(tmp_path / "none", STOOD)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", json.dumps({"schema": "lumctl/job-kept/v1", "status": 1})])
def test_what_is_none_of_ours_counts_as_nothing(tmp_path, text):
    (tmp_path / STATUS).write_text(text)
    assert saved_status(tmp_path) is None
    assert ended_status(tmp_path) is None
    assert earlier_recoveries(tmp_path) == ()
