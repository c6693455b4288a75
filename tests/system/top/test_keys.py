"""A fault from its appearance to the verified swap and the replay of that, by keys alone on a real terminal."""

import sys

import pytest
from terminals import terminal

from lumctl.errors import ExitCode

LOST, SPARE, JOB = "s1-gpu0", "s3-gpu0", "finetune"
CIRCUITS = 6
KEYS_AT_MOST = 4


@pytest.mark.timeout(180)
def test_four_keys_that_the_screen_names_lead_from_a_fault_to_the_verified_swap(rack):
    command = [sys.executable, "-m", "lumctl", "top", "--interval", "0.5"]
    with terminal(command, rack.environment) as top:
        top.see("live", "nothing is wrong", f"{CIRCUITS} circuits", without=["failed"])

        rack("sim", "fault", LOST, "gpu-lost")
        top.see("5 Incidents ✖1")
        before = len(top.pressed)
        # One of them only looks at the picture of the mesh.
        top.press("p", "p plan swap")
        top.see(f"{JOB}: replace {LOST} by {SPARE}", "spares considered", "Apply this plan to TARGET sim?")
        top.press("v", "v view")
        top.see("mesh: ", "PUCs change", "TARGET sim?", without=["spares considered"])
        top.press("y", "y enter apply")
        top.press("\r", "y enter apply")
        top.see(": done in ", "4 receivers proved", f"● hears {SPARE}-a", f"● hears {SPARE}-b")
        assert len(top.pressed) - before <= KEYS_AT_MOST
        assert_mended(rack)

        top.press("b", "b: its runbook")
        top.see("recorded", "runbook swap-0001", "replacements")
        top.press("\x1b", "esc")
        top.see("4 receivers proved")
        top.press("\x1b", "esc")
        top.see("accelerators 1 disabled")
        top.press("5", "5 incidents")
        top.see("TOUCHES", "out of service", without=["swap in a spare"])
        top.press("3", " 3 Circuits", anywhere=True)
        top.see_lines(CIRCUITS, "● ok", JOB, "as intended")
        top.see(f"{SPARE}-a", f"{SPARE}-b", without=[f"{LOST}-"])

        top.press("6", " 6 Swaps", anywhere=True)
        top.see("OUTCOME", f"{JOB}: replace {LOST} by {SPARE}")
        top.press("\r", "enter details")
        top.see("● done", "4 receivers proved", "verify 4 new circuits")
        top.press("b", "b runbook")
        top.see("recorded", "runbook swap-0001", "replacements")
        top.press("s", "s replay on sim")
        top.see("> next", "waits before step 1")
        top.press("g", " g to ")
        top.see("● identical: done as recorded, 8 steps", "● the same", without=["DIFFERS"])

        top.press("q", "q quit")
        assert top.code() == ExitCode.DONE
        assert not top.shown.is_alternate
    assert [run["run"] for run in rack.swaps()] == ["swap-0001"]  # nothing of a replay is kept


def assert_mended(rack):
    """The swap was made, and light proves it: as a command tells it that knows nothing of the dashboard."""
    (swap,) = rack.swaps()
    assert (swap["title"], swap["outcome"]) == (f"{JOB}: replace {LOST} by {SPARE}", "done")
    journal = rack.data("swap", "show", swap["run"])["journal"]
    proofs = [proof for entry in journal for proof in entry["data"].get("proofs", ())]
    assert {proof["receiver"] for proof in proofs} == {f"{SPARE}-a", f"{SPARE}-b", "s0-gpu0-b", "s2-gpu0-a"}
    status = rack.data("status")
    assert status["incidents"] == []
    assert [circuit["state"] for circuit in status["circuits"] if circuit["owner"] == JOB] == ["ok"] * CIRCUITS
    receivers = [end for circuit in status["circuits"] for end in circuit["ends"] if end["expected"]]
    assert len(receivers) == CIRCUITS
    assert all(end["hears"] == end["expected"] for end in receivers)
    assert rack.places(JOB) == ["s0-gpu0", SPARE, "s2-gpu0"]
