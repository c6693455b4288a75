"""The requirements of every kind of job control."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, Unpack

import pytest

from lumctl.devices.testing.rules import not_tested
from lumctl.errors import LumctlError, RefusedError
from lumctl.inventory.entry import JobKindEntry
from lumctl.inventory.job_kinds import API
from lumctl.jobs.control import NOBODY, QUIET, RUNNING, Facts, JobContext, JobControl, More, Placement, Rank
from lumctl.programs import MOST_SAID_BYTES, Ended, run_program


class CutShortProgram:
    """Runs the first ``passed`` programs; each later program ends as ``refusal`` without being run.

    When a control waits, the clock jumps ahead. So a control that waits for an event that never comes times out at
    once.
    """

    def __init__(self, context: JobContext, passed: int, refusal: Ended) -> None:
        self.refused = False
        """Whether a program was refused."""
        self._context, self._left, self._refusal = context, passed, refusal
        self._waited_s = 0.0

    def run(self, argv: Sequence[str], *, act: str, timeout_s: float, **more: Unpack[More]) -> Ended:
        """Run a program, or refuse it."""
        self._left -= 1
        if self._left < 0:
            self.refused = True
            return self._refusal
        return self._context.run(argv, act=act, timeout_s=timeout_s, **more)

    def now(self) -> float:
        """The time in seconds, including the simulated waits."""
        return self._context.now() + self._waited_s

    def wait(self, seconds: float) -> None:
        """Advance the clock without waiting."""
        self._waited_s += seconds


RULES = {
    "refused": "a RefusedError means that the job is as it was: once something was changed, raise another LumctlError",
    "placement": "success of resume means that the job runs at the placement: otherwise move it there, or raise",
    "ranks": "`ranks` of the evidence is where each rank really runs, and is omitted if unknown",
    "hosts": (
        "`hosts` of the set-up returns the names of the hosts on which the job runs, observed independently of the "
        "control"
    ),
}
"""The rules that these tests check, by name. A failure shows the name and the text of the rule."""
REFUSAL = Ended(1, late=False, said="the contract kit refuses")
MOST_PROGRAMS = 20
"""Maximum number of programs of one act that the kit refuses, one after the other."""


@dataclass(frozen=True)
class JobUnderTest:
    """A control and its job. The job runs at ``placement``; tests may pause and resume it any number of times.

    ``settings`` are the settings of the control. ``truth`` returns the job's real state (running, paused or stopped)
    and ``hosts`` the hosts on which it runs; both must not use the control. ``elsewhere`` is a second placement, with a
    spare, and ``facts`` the swap that produces it. ``refused`` is a control whose scheduler refuses every change,
    ``silent`` a control whose scheduler does not answer. ``context`` is the context of the control: the kit makes
    further controls from it, and ends their programs as ``refusal`` in the middle of an act.
    """

    control: JobControl
    settings: Any
    placement: Placement
    truth: Callable[[], str]
    hosts: Callable[[], Sequence[str]] | None = None
    elsewhere: Placement | None = None
    facts: Facts = NOBODY
    refused: JobControl | None = None
    silent: JobControl | None = None
    context: JobContext | None = None
    refusal: Ended = REFUSAL


class JobContract:
    """Subclass it and override the fixture ``job``."""

    @pytest.fixture
    def job(self) -> JobUnderTest:
        """The control under test and its job; override this."""
        pytest.fail("override the fixture `job`")

    def test_it_declares_itself(self, job: JobUnderTest) -> None:
        """The class states its own API version, and its entry describes the keys of the inventory."""
        kind = type(job.control)
        fitted = API.fitted(kind)
        assert isinstance(fitted, type), fitted
        assert kind.entry is not None
        assert issubclass(kind.entry, JobKindEntry)

    def test_it_names_itself_and_its_programs(self, job: JobUnderTest) -> None:
        """Operators read the words; lumctl looks for the programs before it changes anything."""
        assert len(job.control.words(job.settings).splitlines()) == 1
        for argv in job.control.programs(job.settings).values():
            assert argv
            assert all(isinstance(word, str) for word in argv)

    def test_its_status_is_the_truth(self, job: JobUnderTest) -> None:
        """Status is right before and after a pause; ``None`` is allowed if the state cannot be found."""
        assert job.control.status() in {job.truth(), None}
        job.control.pause(job.facts, job.placement)
        assert job.control.status() in {job.truth(), None}

    def test_a_paused_job_is_quiet(self, job: JobUnderTest) -> None:
        """The job is quiet as soon as ``pause`` returns, for its light moves then; the evidence is text."""
        evidence = job.control.pause(job.facts, job.placement)
        assert job.truth() in QUIET
        assert (evidence["was"], evidence["is"]) == (RUNNING, job.truth())
        assert all(isinstance(each, str) for pair in evidence.items() for each in pair)

    def test_pausing_twice_is_harmless(self, job: JobUnderTest) -> None:
        """A run that lumctl resumes pauses its job again."""
        job.control.pause(job.facts, job.placement)
        evidence = job.control.pause(job.facts, job.placement)
        assert evidence["was"] in QUIET
        assert job.truth() in QUIET

    def test_the_set_up_knows_where_the_job_runs(self, job: JobUnderTest) -> None:
        """The set-up reports the hosts of the job; otherwise no test could see that it runs elsewhere."""
        hosts = _hosts(job)
        if hosts != _of(job.placement):
            _broken("hosts", f"the job runs on {_of(job.placement)}, but hosts() returned {hosts}")
        if job.elsewhere is not None and _of(job.elsewhere) == hosts:
            _broken("hosts", f"`elsewhere` is on the same hosts as `placement`: {hosts}")

    def test_it_goes_on_where_it_was(self, job: JobUnderTest) -> None:
        """The job resumes at its old placement, as after a swap that was undone."""
        job.control.pause(job.facts, job.placement)
        evidence = job.control.resume(job.facts, job.placement)
        assert job.truth() == evidence["is"] == RUNNING
        _require_at(job, job.placement, evidence)

    def test_it_goes_on_elsewhere(self, job: JobUnderTest) -> None:
        """The job resumes at another placement, as after a swap."""
        elsewhere = _elsewhere(job)
        job.control.pause(job.facts, job.placement)
        evidence = job.control.resume(job.facts, elsewhere)
        assert job.truth() == RUNNING
        _require_at(job, elsewhere, evidence)

    def test_resuming_what_runs_is_harmless(self, job: JobUnderTest) -> None:
        """A running job is not started a second time."""
        evidence = job.control.resume(job.facts, job.placement)
        assert (evidence["was"], evidence["is"]) == (RUNNING, RUNNING)
        assert job.truth() == RUNNING

    def test_a_job_that_runs_elsewhere_is_never_reported_as_resumed(self, job: JobUnderTest) -> None:
        """If another program has started the job at its old placement, the control moves it or raises an error."""
        elsewhere = _elsewhere(job)
        _hosts(job)
        try:
            evidence = job.control.resume(job.facts, elsewhere)
        except RefusedError:
            if (job.truth(), _hosts(job)) != (RUNNING, _of(job.placement)):
                _broken("refused", f"resume raised RefusedError, but the job is {job.truth()} on {_hosts(job)}")
        except LumctlError:
            return
        else:
            assert job.truth() == RUNNING
            _require_at(job, elsewhere, evidence)

    def test_a_refusal_leaves_the_job_as_it_was(self, job: JobUnderTest) -> None:
        """After a refused pause the job still runs; lumctl then changes nothing and reports that."""
        if job.refused is None:
            return
        with pytest.raises(RefusedError):
            job.refused.pause(job.facts, job.placement)
        assert job.truth() == RUNNING

    def test_a_pause_is_not_refused_after_a_change(self, job: JobUnderTest) -> None:
        """The scheduler refuses after each of the programs that a pause runs."""
        _cut_each(job, "pause", lambda control: control.pause(job.facts, job.placement), quiet=False)

    def test_a_resume_is_not_refused_after_a_change(self, job: JobUnderTest) -> None:
        """The scheduler refuses after each of the programs that a resume runs."""
        _cut_each(job, "resume", lambda control: control.resume(job.facts, job.placement), quiet=True)

    def test_a_move_is_not_refused_after_a_change(self, job: JobUnderTest) -> None:
        """The same for a job that runs elsewhere: a job that was ended for its move is not unchanged."""
        elsewhere = _elsewhere(job)
        _cut_each(job, "resume", lambda control: control.resume(job.facts, elsewhere), quiet=False)

    def test_silence_is_never_a_state(self, job: JobUnderTest) -> None:
        """If the scheduler does not answer, the control raises; it reports neither paused nor running."""
        silent = job.silent
        if silent is None:
            return
        for act in (silent.status, lambda: silent.pause(job.facts, job.placement)):
            with pytest.raises(LumctlError):
                act()
        assert job.truth() == RUNNING


def _broken(rule: str, found: str) -> NoReturn:
    pytest.fail(f"rule {rule!r}: {RULES[rule]}\n  found: {found}")


def _elsewhere(job: JobUnderTest) -> Placement:
    if job.elsewhere is None:
        not_tested("the set-up gives no `elsewhere`")
    return job.elsewhere


def _of(placement: Placement) -> list[str]:
    return sorted({rank.host for rank in placement})


def _hosts(job: JobUnderTest) -> list[str]:
    """The hosts on which the job runs, as the set-up reports them."""
    if job.hosts is None:
        not_tested("the set-up gives no `hosts`")
    told: Any = job.hosts()
    if isinstance(told, str) or not all(isinstance(host, str) for host in told):
        _broken("hosts", f"hosts() returned {told!r}, which are not single names")
    return sorted(set(told))


def _require_at(job: JobUnderTest, placement: Placement, evidence: Mapping[str, str]) -> None:
    """Check that the job runs at a placement, and that the evidence does not contradict it."""
    if job.hosts is not None and (hosts := _hosts(job)) != _of(placement):
        _broken("placement", f"resume reported success for {_of(placement)}, but the job runs on {hosts}")
    if "ranks" in evidence:
        told = [each.strip() for each in evidence["ranks"].split(",")]
        wanted = [{rank.accelerator, rank.host} for rank in placement]
        if len(told) != len(wanted) or any(at not in names for at, names in zip(told, wanted, strict=True)):
            placed = ",".join(rank.accelerator for rank in placement)
            _broken("ranks", f"resume returned {evidence['ranks']!r} for a job that runs on {placed}")


def _cut_each(job: JobUnderTest, name: str, act: Callable[[JobControl], object], *, quiet: bool) -> None:
    """Run an act again and again, refusing its programs after the first 0, 1, 2 ..., until no program is refused."""
    if job.context is None:
        not_tested("the set-up gives no `context`")
    for passed in range(MOST_PROGRAMS):
        if quiet:
            job.control.pause(job.facts, job.placement)
        before = _state(job)
        cut = CutShortProgram(job.context, passed, job.refusal)
        try:
            act(type(job.control)(replace(job.context, run=cut.run, now=cut.now, wait=cut.wait)))
        except RefusedError as error:
            if (after := _state(job)) != before:
                said = f"{name} raised RefusedError ({error.message}) after {passed} programs had run"
                _broken("refused", f"{said}: the job was {before} but is now {after}")
        except LumctlError:
            pass
        # All programs of the act have run: there is nothing left to cut.
        if not cut.refused:
            return
        # Whatever the act left behind, the next round begins with the job running at its placement.
        job.control.pause(job.facts, job.placement)
        job.control.resume(job.facts, job.placement)


def _state(job: JobUnderTest) -> str:
    """The state of the job, and its hosts if it runs."""
    state = job.truth()
    return f"{state} at {', '.join(_hosts(job))}" if state == RUNNING and job.hosts is not None else state


def ranks(*hosts: str) -> Placement:
    """A placement: one rank on each of these hosts, on its first accelerator (``h1-gpu0`` on ``h1``)."""
    return tuple(Rank(rank, f"{host}-gpu0", host, 0) for rank, host in enumerate(hosts))


def bench_context(
    settings: Any, placement: Placement, *, job: str = "train", target: str = "rack", timeout_s: float = 10.0
) -> JobContext:
    """A context whose programs really run, on this machine; accelerators have the names that :func:`ranks` gives."""

    def run(argv: Sequence[str], *, act: str, timeout_s: float, **more: Unpack[More]) -> Ended:
        variables = {"LUMCTL_JOB": job, "LUMCTL_ACT": act, "LUMCTL_TARGET": target}
        most = more.get("most_said", MOST_SAID_BYTES)
        return run_program(argv, timeout_s=timeout_s, variables=variables, most_said=most)

    return JobContext(
        job=job,
        target=target,
        timeout_s=timeout_s,
        settings=settings,
        inventory=Path("lumctl.yaml"),
        placement=lambda: placement,
        host_of=lambda accelerator: accelerator.rpartition("-")[0],
        address_of=lambda host: host,
        run=run,
        now=time.monotonic,
        wait=threading.Event().wait,
    )
