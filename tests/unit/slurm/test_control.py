"""What a control of Slurm's jobs does where Slurm stops answering in the middle of it."""

import time
from pathlib import Path

import pytest
from lumctl_slurm.cluster import SlurmHookEntry
from lumctl_slurm.control import Slurm

from lumctl.errors import RefusedError, UnreachableError
from lumctl.jobs.control import Facts, JobContext, Rank
from lumctl.programs import Ended

FACTS = Facts("swap-1", ["h1-g0", "h2-g0"], ["h5-g0", "h6-g0"])
PLACED = [Rank(0, "h1-g0", "h1", 0), Rank(1, "h2-g0", "h2", 0)]


def ended(code, said):
    return Ended(code, late=False, said=said)


GONE = ended(1, "slurm_update error: Unable to contact slurm controller (connect failure)")


class Cluster:
    """Slurm with one job on two nodes; it answers no more once a command that holds one of these words was given."""

    def __init__(self, *last_words: str) -> None:
        self.last_words = last_words
        self.reasons = {"h1": "none", "h2": "none"}
        self.answers = True

    def run(self, argv, **_):
        if not self.answers:
            return GONE
        said = " ".join(argv)
        self.answers = not any(word in said for word in self.last_words)
        return self.done(argv, said)

    def done(self, argv, said):
        if argv[0] == "squeue":
            return ended(0, "7|u|RUNNING|100|h1,h2|7|1:02|train\n" if "--format" in argv[-1] else "(null)\n")
        if argv[0] == "sinfo":
            return ended(0, "".join(f"{node}|idle|{why}\n" for node, why in self.reasons.items()))
        if argv[:2] == ["scontrol", "show"]:
            return ended(0, "h1\nh2\n")
        if "nodename=" in said:
            node = argv[2].partition("=")[2]
            self.reasons[node] = argv[4].partition("=")[2] if len(argv) > 4 else "none"
        return ended(0, "")


def control(cluster) -> Slurm:
    settings = SlurmHookEntry.model_validate({"kind": "slurm"})
    where = (Path("inventory.yaml"), lambda: PLACED, lambda accelerator: accelerator.partition("-")[0], str)
    return Slurm(JobContext("train", "rack", 3.0, settings, *where, cluster.run, time.monotonic, time.sleep))


def test_nodes_that_stay_drained_are_told_of():
    with pytest.raises(UnreachableError, match="nodename=h2 failed") as error:
        control(Cluster("nodename=h1")).pause(FACTS, PLACED)
    assert "node h1, h2 may also stay drained" in error.value.message
    assert "scontrol ping; then: scontrol update nodename=h1,h2 state=undrain" in error.value.hint


def test_where_they_are_given_back_nothing_was_done():
    class OneRefused(Cluster):
        def done(self, argv, said):
            return ended(1, "Access denied") if "nodename=h2" in said else super().done(argv, said)

    cluster = OneRefused()
    with pytest.raises(RefusedError, match="nodename=h2 failed: Access denied"):
        control(cluster).pause(FACTS, PLACED)
    assert cluster.reasons == {"h1": "none", "h2": "none"}


def test_nodes_that_stay_drained_as_the_job_is_not_requeued_are_told_of():
    class NeverRequeued(Cluster):
        def done(self, argv, said):
            return ended(1, "disabled") if "requeuehold" in said else super().done(argv, said)

    cluster = NeverRequeued("nodename=h1 state=undrain")
    with pytest.raises(UnreachableError, match="requeuehold 7 failed: disabled; node h2 may also stay drained"):
        control(cluster).pause(FACTS, PLACED)
    assert cluster.reasons["h2"].startswith("lumctl swap-1: h2-g0")


def test_a_job_that_runs_elsewhere_is_not_reported_as_resumed():
    cluster = Cluster()
    cluster.reasons["h5"] = "none"
    with pytest.raises(RefusedError, match=r"job 7 .*runs on h1,h2, but lumctl has it on h5"):
        control(cluster).resume(FACTS, [Rank(0, "h5-g0", "h5", 0), PLACED[1]])


class Recorded(Cluster):
    """Slurm that keeps what it was told, and whose job waits, held by lumctl, until it is released."""

    def __init__(self, *, held: bool) -> None:
        super().__init__()
        self.reasons |= {"h5": "none", "h6": "none"}
        self.held, self.gone, self.told = held, False, []

    def done(self, argv, said):
        if argv[0] == "squeue" and "admin_comment" in said and self.held:
            return ended(0, "lumctl swap-1: requeued\n")
        if argv[0] == "squeue" and "--format" in argv[-1]:
            if self.gone:
                return ended(0, "")
            return ended(0, "7|u|PENDING|0||7|0:00|train\n") if self.held else super().done(argv, said)
        if argv[:2] in (["scontrol", "release"], ["scontrol", "requeuehold"]):
            self.held, self.gone = False, argv[1] == "requeuehold"
        if argv[0] == "scontrol" and argv[1] != "show":
            self.told.append(argv[1:])
        return super().done(argv, said)


def test_a_job_that_slurm_starts_elsewhere_is_not_reported_as_resumed():
    placed = [Rank(0, "h5-g0", "h5", 0), Rank(1, "h6-g0", "h6", 0)]
    with pytest.raises(UnreachableError, match="runs on h1,h2, but lumctl has it on h5, h6: Slurm started") as error:
        control(Recorded(held=True)).resume(FACTS, placed)
    assert "ReqNodeList=h5,h6" in error.value.hint


def test_a_refusal_leaves_all_as_it_was():
    cluster = Recorded(held=False)
    with pytest.raises(RefusedError, match="lumctl has it on h5, h6"):
        control(cluster).resume(FACTS, [Rank(0, "h5-g0", "h5", 0), Rank(1, "h6-g0", "h6", 0)])
    assert cluster.told == []


def test_a_job_that_is_gone_once_it_was_requeued_is_not_as_it_was():
    with pytest.raises(UnreachableError, match="job 7 is no longer in Slurm's queue"):
        control(Recorded(held=False)).pause(FACTS, PLACED)


def test_a_job_that_runs_at_its_placement_is_left_running():
    assert control(Cluster()).resume(Facts("", [], []), PLACED)["is"] == "running"
