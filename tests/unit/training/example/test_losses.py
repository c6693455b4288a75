import pytest

from lumctl.training.example.data import REMEMBERED, Losses, read_losses


def run(path, steps, *, losses=None):
    losses = losses or Losses(path)
    for step in steps:
        losses.note(step, step / 3)
        losses.write()
    return losses


def test_a_file_keeps_every_bit(tmp_path):
    run(tmp_path / "losses", range(3))
    assert read_losses(tmp_path / "losses") == {0: 0.0, 1: 1 / 3, 2: 2 / 3}


def test_a_step_done_again_by_another_is_there_once(tmp_path):
    run(tmp_path / "losses", range(5))
    run(tmp_path / "losses", range(4, 7))
    assert (tmp_path / "losses").read_text() == "".join(f"{step} {(step / 3).hex()}\n" for step in range(7))


def test_a_step_done_again_by_the_same_is_there_once(tmp_path):
    losses = run(tmp_path / "losses", range(5))
    run(tmp_path / "losses", range(3, 6), losses=losses)
    assert list(read_losses(tmp_path / "losses")) == [0, 1, 2, 3, 4, 5]


def test_what_the_dead_had_done_and_not_written_is_written_by_who_follows(tmp_path):
    run(tmp_path / "losses", range(4))
    survivor, spare = Losses(None), Losses(tmp_path / "losses")
    for step in range(6):
        survivor.note(step, step / 3)
    spare.load_state_dict(survivor.state_dict())
    run(tmp_path / "losses", [6], losses=spare)
    assert read_losses(tmp_path / "losses") == {step: step / 3 for step in range(7)}


@pytest.mark.parametrize("tail", ["4 0x1.5", "4", "", "4 0x1.5555555555555p+0"])
def test_a_line_cut_short_is_replaced(tmp_path, tail):
    path = tmp_path / "losses"
    run(path, range(4))
    path.write_text(path.read_text() + tail)
    run(path, [4, 5])
    assert read_losses(path) == {step: step / 3 for step in range(6)}


def test_no_more_is_remembered_than_can_be_needed():
    losses = Losses(None)
    for step in range(100):
        losses.note(step, 0.5)
        losses.write()
    assert list(losses.state_dict()["recent"]) == list(range(100 - REMEMBERED, 100))
