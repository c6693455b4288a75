"""The contract kit catches every deliberately wrong job control, and its failure names the broken rule."""

from dataclasses import replace
from typing import ClassVar

import pytest

from lumctl.errors import RefusedError, UnreachableError
from lumctl.inventory.entry import JobKindEntry
from lumctl.jobs.control import Facts
from lumctl.jobs.testing import JobContract, JobUnderTest, bench_context, ranks
from lumctl.programs import Ended

HERE, ELSEWHERE = ranks("h1", "h2"), ranks("h1", "h3")
REFUSED = 1


class Scheduler:
    """A scheduler with one job: ``hold``, ``release HOSTS``, ``show`` and ``where``."""

    def __init__(self) -> None:
        self.state, self.hosts = "running", ["h1", "h2"]

    def run(self, argv, **_):
        verb, *hosts = argv
        if verb == "hold":
            self.state = "paused"
        elif verb == "release":
            self.state, self.hosts = "running", hosts
        return Ended(0, late=False, said=",".join(self.hosts) if verb == "where" else self.state)


class RightJob:
    """Keeps the contract; each wrong one below is wrong in one thing."""

    api_version: ClassVar[int] = 1
    entry = JobKindEntry

    def __init__(self, context):
        self._context, self._changed = context, False

    def status(self):
        return self._ask("show")

    def pause(self, facts, placement):
        del facts, placement
        self._changed = False
        was = self.status()
        if was == "running":
            self._change("hold")
        return {"was": was, "is": self.status()}

    def resume(self, facts, placement):
        del facts
        self._changed = False
        was, hosts = self.status(), [rank.host for rank in placement]
        if was == "running" and self._ask("where").split(",") != hosts:
            self._move(hosts)
        if was != "running":
            self._change("release", *hosts)
        return {"was": was, "is": self.status(), **self._ranks(placement)}

    @classmethod
    def programs(cls, _settings):
        return {}

    @classmethod
    def words(cls, _settings):
        return "a scheduler"

    def _move(self, hosts):
        self._change("hold")
        self._change("release", *hosts)

    def _ranks(self, _placement):
        return {"ranks": self._ask("where")}

    def _change(self, *argv):
        self._ask(*argv)
        self._changed = True

    def _ask(self, *argv):
        ended = self._context.run(argv, act="", timeout_s=1.0)
        if ended.code == REFUSED:
            raise (UnreachableError if self._changed else RefusedError)(f"{argv[0]} was refused")
        return ended.said


class RefusesAfterChange(RightJob):
    """Takes every refusal of its scheduler for one of the whole act."""

    def _change(self, *argv):
        self._ask(*argv)


class BelievesItMoved(RightJob):
    """Reports success for a job that somebody started with its old ranks."""

    def _move(self, hosts):
        pass

    def _ranks(self, _placement):
        return {}


class CopiesRanks(BelievesItMoved):
    """The same, with the placement as what it claims to have seen."""

    def _ranks(self, placement):
        return {"ranks": ",".join(rank.accelerator for rank in placement)}


class RefusesAndMoves(RightJob):
    """Says that the job runs where it was, once it has ended it there."""

    def _move(self, hosts):
        self._change("release", *hosts)
        raise RefusedError("it ran elsewhere")


class NamesTooFewRanks(RightJob):
    """Names only the first rank."""

    def _ranks(self, _placement):
        return {"ranks": self._ask("where").partition(",")[0]}


class SortsRanks(RightJob):
    """Names them in an order of its own."""

    def _ranks(self, _placement):
        return {"ranks": ",".join(reversed(self._ask("where").split(",")))}


def under_test(kind, **changes) -> JobUnderTest:
    scheduler = Scheduler()
    context = replace(bench_context(None, HERE), run=scheduler.run)
    made = JobUnderTest(
        control=kind(context),
        settings=None,
        placement=HERE,
        truth=lambda: scheduler.state,
        hosts=lambda: scheduler.hosts,
        elsewhere=ELSEWHERE,
        facts=Facts("swap-0001", ["h2-gpu0"], ["h3-gpu0"]),
        context=context,
    )
    return replace(made, **changes)


class TestRightJob(JobContract):
    """The one that the wrong ones are made from keeps the contract."""

    @pytest.fixture
    def job(self):
        return under_test(RightJob)


A_MOVE = "a_job_that_runs_elsewhere_is_never_reported_as_resumed"
HOSTS = "the_set_up_knows_where_the_job_runs"


@pytest.mark.parametrize(
    ("kind", "test", "rule", "says"),
    [
        (
            RefusesAfterChange,
            "a_pause_is_not_refused_after_a_change",
            "refused",
            "was running at h1, h2 but is now paused",
        ),
        (
            RefusesAfterChange,
            "a_resume_is_not_refused_after_a_change",
            "refused",
            "was paused but is now running at h1, h2",
        ),
        (
            RefusesAfterChange,
            "a_move_is_not_refused_after_a_change",
            "refused",
            "was running at h1, h2 but is now paused",
        ),
        (RefusesAndMoves, A_MOVE, "refused", "the job is running on .*h3"),
        (BelievesItMoved, A_MOVE, "placement", "success for .*h3.* runs on .*h2"),
        (CopiesRanks, A_MOVE, "placement", "success for .*h3.* runs on .*h2"),
        (NamesTooFewRanks, "it_goes_on_elsewhere", "ranks", "returned 'h1' for a job that runs on h1-gpu0,h3-gpu0"),
        (SortsRanks, "it_goes_on_where_it_was", "ranks", "returned 'h2,h1'"),
    ],
)
def test_it_is_caught_by_its_rule(kind, test, rule, says):
    with pytest.raises(pytest.fail.Exception, match=rf"(?s)^rule '{rule}': .*found: .*{says}"):
        getattr(JobContract(), f"test_{test}")(under_test(kind))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hosts": list}, r"runs on \['h1', 'h2'\], but hosts\(\) returned \[\]"),
        ({"hosts": lambda: ["h1", "h3"]}, "returned .*h3"),
        ({"hosts": lambda: "h1,h2"}, "'h1,h2', which are not single names"),
        ({"elsewhere": HERE}, "`elsewhere` is on the same hosts"),
    ],
)
def test_a_set_up_that_does_not_know_where_the_job_runs_is_caught(changes, says):
    with pytest.raises(pytest.fail.Exception, match=rf"(?s)^rule 'hosts': .*found: .*{says}"):
        getattr(JobContract(), f"test_{HOSTS}")(under_test(RightJob, **changes))


@pytest.mark.parametrize(
    ("lacks", "test"),
    [("hosts", HOSTS), ("elsewhere", A_MOVE), ("context", "a_pause_is_not_refused_after_a_change")],
)
def test_what_the_set_up_does_not_give_is_not_tested_and_says_so(lacks, test):
    with pytest.raises(pytest.skip.Exception, match=f"not tested: the set-up gives no `{lacks}`"):
        getattr(JobContract(), f"test_{test}")(under_test(RightJob, **{lacks: None}))
