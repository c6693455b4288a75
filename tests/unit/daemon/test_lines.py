"""What changed, for people who read a log: causes first, and no line twice."""

from lumctl.daemon.loop import transition_lines
from lumctl.health.states import State
from lumctl.health.transitions import Transition


def change(component, kind, after=State.UNKNOWN, evidence="", *rules):
    return Transition(1.0, component, kind, State.OK, after, rules, evidence)


def test_a_host_that_is_lost_is_two_lines_and_its_own_comes_first():
    changes = [change(f"h05-gpu{n}", "accelerator") for n in range(4)]
    changes.append(change("h05", "host", State.FAILED, "it is down", "host.unreachable"))
    assert list(transition_lines(changes)) == [
        "host h05 ok -> failed: it is down (host.unreachable)",
        "4 accelerators h05-gpu[0-3] ok -> unknown",
    ]


def test_what_was_seen_otherwise_is_another_line():
    changes = [change("a1", "link", State.FAILED, "no light", "x"), change("a2", "link", State.FAILED, "down", "y")]
    assert list(transition_lines(changes)) == ["link a1 ok -> failed: no light (x)", "link a2 ok -> failed: down (y)"]


def test_every_name_is_told():
    names = ["train-a/3-4", "train-a/4-5", "train-b/0-1"]
    (line,) = transition_lines(change(name, "circuit") for name in names)
    assert line.startswith("3 circuits ")
    assert all(name in line for name in names)
