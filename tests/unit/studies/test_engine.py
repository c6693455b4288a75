"""What solves the cases of a study: whatever it is and whatever dies, the rows are equal."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from types import SimpleNamespace

import drawn_study
import pytest
from drawn_study import STUDY

from lumctl.errors import ExitCode, LumctlError, UsageError
from lumctl.studies import engine
from lumctl.studies.engine import StudyWorkers, solve_cases
from lumctl.studies.folder import read_results
from lumctl.studies.results import run_study

PROGRAM = Path(drawn_study.__file__)


@pytest.fixture
def deaths(tmp_path, monkeypatch):
    """A folder with a file for each process that a case killed."""
    folder = tmp_path / "deaths"
    folder.mkdir()
    monkeypatch.setenv("DRAWN_DEATHS", str(folder))
    return folder


def started(*words, **settings):
    """The program with the drawn study, in a process group of its own, as a shell starts it."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(PROGRAM.parent), str(PROGRAM.parents[2])]),
        **settings,
    }
    return subprocess.Popen(
        [sys.executable, PROGRAM, "study", "run", "drawn", "-o", "json", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def until(is_so, within_s=60.0):
    """Wait until something is so."""
    ends = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.02)


def lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def rows(*given, workers=engine.HERE):
    return run_study(STUDY, STUDY.settings(given), workers=workers).rows


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_find_the_rows_of_one_in_the_same_order(processes):
    assert rows("seconds=0.02", workers=StudyWorkers(processes)) == rows()
    assert not active_children()


def test_a_short_study_starts_no_processes(monkeypatch):
    monkeypatch.setattr(engine, "_pool", None)
    assert rows(workers=StudyWorkers()) == rows()


def test_a_long_study_goes_on_in_processes(monkeypatch):
    monkeypatch.setattr(engine, "_HERE_S", 0.05)
    monkeypatch.setattr(engine, "_WORTH_S", 0.1)
    monkeypatch.setattr(engine, "_processors", lambda: 2)
    cases, pids = dict(enumerate((number,) for number in range(8))), set()
    with closing(solve_cases(of_pids(), cases, StudyWorkers())) as solved:
        for _, (row,) in solved:
            pids.add(row["pid"])
    assert os.getpid() in pids
    assert len(pids) > 1


def of_pids():
    """A study whose rows say which process found them."""
    return replace(STUDY, solve=which_process)


def which_process(number):
    time.sleep(0.05)
    yield {"number": number, "pid": os.getpid()}


def test_a_worker_that_is_killed_costs_nothing_but_time():
    cases = dict(enumerate(STUDY.cases(STUDY.settings(["seconds=0.05", "seeds=12"]))))
    found = {}
    with closing(solve_cases(STUDY, cases, StudyWorkers(2))) as solved:
        for number, each in solved:
            assert number not in found
            found[number] = each
            if len(found) in {2, 6}:
                active_children()[0].kill()
    assert tuple(row for number in sorted(found) for row in found[number]) == rows("seeds=12")


def test_a_case_that_kills_its_worker_twice_is_solved_alone(deaths):
    assert rows("fatal=2", workers=StudyWorkers(2)) == rows()
    assert len(list(deaths.iterdir())) == 2


def test_a_case_that_kills_each_worker_is_named(deaths):
    with pytest.raises(
        LumctlError, match=r"study drawn: each worker that was given case \(1, 0\.0, 10, .*\) died"
    ) as error:
        rows("fatal=10", workers=StudyWorkers(2))
    assert "\n" not in error.value.message
    assert len(list(deaths.iterdir())) == 3
    assert not active_children()


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_of_a_case_is_that_error_wherever_it_is_solved(processes, monkeypatch):
    monkeypatch.setenv("DRAWN_DEATHS", "/nowhere")
    with pytest.raises(FileNotFoundError):
        rows("fatal=1", workers=StudyWorkers(processes))
    assert not active_children()


def test_ctrl_c_keeps_what_is_done_and_resume_continues(tmp_path):
    words = ["--set", "seconds=0.3", "--seeds", "10", "--workers", "2", "--out", str(tmp_path / "run")]
    cases = tmp_path / "run" / "cases.jsonl"
    with started(*words) as process:
        until(lambda: lines(cases) >= 3)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == ExitCode.INTERRUPTED, err
    assert out == ""
    assert re.fullmatch(r"\d cases are in .*run; the same command with --resume continues\nlumctl: interrupted\n", err)
    assert not (tmp_path / "run" / "study.json").exists()
    done = cases.read_bytes()
    with started(*words, "--resume") as process:
        assert process.wait() == ExitCode.DONE
        process.communicate()
    assert cases.read_bytes().startswith(done)
    assert lines(cases) == 10
    assert read_results(tmp_path / "run")[2] == rows("seeds=10")


def test_workers_end_when_the_command_is_killed(tmp_path):
    with started(
        "--set", "seconds=0.2", "--seeds", "1000", "--workers", "2", "--out", str(tmp_path / "run")
    ) as process:
        until(lambda: lines(tmp_path / "run" / "cases.jsonl") >= 2)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
        assert len(children) >= 2
        process.kill()
        process.communicate()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), 10.0)


@pytest.mark.parametrize(
    ("workers", "executor", "said"),
    [
        (0, None, "--workers is 0, expected 1 to 1024"),
        (None, "slrum", "--executor is 'slrum', expected dask, dask:ADDRESS or slurm"),
        (None, "dask:", "--executor is 'dask:', expected dask, dask:ADDRESS or slurm"),
        (2, "dask:tcp://127.0.0.1:1", "--workers and --executor dask:ADDRESS exclude each other"),
    ],
)
def test_wrong_workers_are_refused(workers, executor, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        StudyWorkers.of(workers, executor)


def test_progress_counts_cases_and_estimates_what_is_left(monkeypatch):
    said, clock = [], iter(range(0, 1000, 40))
    monkeypatch.setattr("lumctl.studies.results.time", SimpleNamespace(monotonic=lambda: next(clock)))
    run_study(STUDY, STUDY.settings(["seeds=4"]), tell=said.append)
    assert said == [
        "study drawn: 0 of 4 cases",
        "study drawn: 1 of 4 cases, about 2 min left",
        "study drawn: 2 of 4 cases, about 80 s left",
        "study drawn: 3 of 4 cases, about 40 s left",
        "study drawn: 4 of 4 cases",
    ]
