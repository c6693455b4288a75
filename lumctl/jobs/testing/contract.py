"""What every kind of job control must do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from lumctl.errors import LumctlError, RefusedError
from lumctl.inventory.hook_entries import JobKindEntry
from lumctl.inventory.job_kinds import API
from lumctl.jobs.control import NOBODY, QUIET, RUNNING, Facts, JobControl, Placement


@dataclass(frozen=True)
class JobUnderTest:
    """A control and its job, which runs at ``placement`` and may be paused and resumed as often as the tests like.

    ``settings`` is what the control was made from. ``truth`` tells what the job really does (running, paused or
    stopped) and ``hosts`` where, both seen apart from the control. ``elsewhere`` is a second placement, with a spare,
    and ``facts`` the swap that leads there. ``refused`` is a control whose scheduler says no to every change,
    ``silent`` one whose scheduler does not answer.
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


class JobContract:
    """Subclass it and override the fixture ``job``."""

    @pytest.fixture
    def job(self) -> JobUnderTest:
        """Give the control under test; override this."""
        pytest.fail("override the fixture `job`")

    def test_it_declares_itself(self, job: JobUnderTest) -> None:
        """Its version is its own, and its entry says what an inventory must hold."""
        kind = type(job.control)
        fitted = API.fitted(kind)
        assert isinstance(fitted, type), fitted
        assert kind.entry is not None
        assert issubclass(kind.entry, JobKindEntry)

    def test_it_names_itself_and_its_programs(self, job: JobUnderTest) -> None:
        """Operators read the words; lumctl looks for the programs before anything is touched."""
        assert len(job.control.words(job.settings).splitlines()) == 1
        for argv in job.control.programs(job.settings).values():
            assert argv
            assert all(isinstance(word, str) for word in argv)

    def test_its_status_is_the_truth(self, job: JobUnderTest) -> None:
        """Before and after a pause; ``None`` is allowed where nothing tells."""
        assert job.control.status() in {job.truth(), None}
        job.control.pause(job.facts, job.placement)
        assert job.control.status() in {job.truth(), None}

    def test_a_paused_job_is_quiet(self, job: JobUnderTest) -> None:
        """Its light may move when ``pause`` returns, not later; the evidence is text."""
        evidence = job.control.pause(job.facts, job.placement)
        assert job.truth() in QUIET
        assert (evidence["was"], evidence["is"]) == (RUNNING, job.truth())
        assert all(isinstance(each, str) for pair in evidence.items() for each in pair)

    def test_pausing_twice_is_harmless(self, job: JobUnderTest) -> None:
        """A run that is resumed does so."""
        job.control.pause(job.facts, job.placement)
        evidence = job.control.pause(job.facts, job.placement)
        assert evidence["was"] in QUIET
        assert job.truth() in QUIET

    def test_it_goes_on_where_it_was(self, job: JobUnderTest) -> None:
        """As after a swap that was undone."""
        job.control.pause(job.facts, job.placement)
        evidence = job.control.resume(job.facts, job.placement)
        assert job.truth() == evidence["is"] == RUNNING
        _require_at(job, job.placement)

    def test_it_goes_on_elsewhere(self, job: JobUnderTest) -> None:
        """As after a swap."""
        if job.elsewhere is None:
            return
        job.control.pause(job.facts, job.placement)
        job.control.resume(job.facts, job.elsewhere)
        assert job.truth() == RUNNING
        _require_at(job, job.elsewhere)

    def test_resuming_what_runs_is_harmless(self, job: JobUnderTest) -> None:
        """It is not started a second time."""
        evidence = job.control.resume(job.facts, job.placement)
        assert (evidence["was"], evidence["is"]) == (RUNNING, RUNNING)
        assert job.truth() == RUNNING

    def test_a_job_that_runs_elsewhere_is_never_reported_as_resumed(self, job: JobUnderTest) -> None:
        """Somebody started it with its old ranks: it is moved, or the control raises."""
        if job.elsewhere is None or job.hosts is None:
            return
        try:
            job.control.resume(job.facts, job.elsewhere)
        except RefusedError:
            _require_at(job, job.placement)
        except LumctlError:
            return
        else:
            assert job.truth() == RUNNING
            _require_at(job, job.elsewhere)

    def test_a_refusal_leaves_the_job_as_it_was(self, job: JobUnderTest) -> None:
        """Lumctl then moves nothing and says so."""
        if job.refused is None:
            return
        with pytest.raises(RefusedError):
            job.refused.pause(job.facts, job.placement)
        assert job.truth() == RUNNING

    def test_silence_is_never_a_state(self, job: JobUnderTest) -> None:
        """Neither paused nor running: an error."""
        silent = job.silent
        if silent is None:
            return
        for act in (silent.status, lambda: silent.pause(job.facts, job.placement)):
            with pytest.raises(LumctlError):
                act()
        assert job.truth() == RUNNING


def _require_at(job: JobUnderTest, placement: Placement) -> None:
    if job.hosts is not None:
        assert sorted(job.hosts()) == sorted({rank.host for rank in placement})
