"""A study on a Dask scheduler and workers of their own, on loopback."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import drawn_study
import pytest
from drawn_study import STUDY

from lumctl.errors import ExitCode
from lumctl.studies.folder import read_results
from lumctl.studies.results import run_study

PROGRAM = Path(drawn_study.__file__)
pytestmark = pytest.mark.slow
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROGRAM.parent), str(PROGRAM.parents[2])])}


@contextmanager
def running(*words, **environment):
    """A part of Dask."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *words],
        env={**ENVIRONMENT, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",  # this folder comes before PYTHONPATH
        process_group=0,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory, require_extra):
    """The file that says where a scheduler is."""
    require_extra("studies", "distributed")
    place = tmp_path_factory.mktemp("dask") / "scheduler.json"
    with running(
        "scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--dashboard-address",
        "127.0.0.1:0",
        "--scheduler-file",
        str(place),
    ):
        ends = time.monotonic() + 60
        while not place.exists():
            assert time.monotonic() < ends
            time.sleep(0.05)
        yield place


def address_of(scheduler):
    return json.loads(scheduler.read_text(encoding="utf-8"))["address"]


def worker(scheduler, **environment):
    words = (
        "--nthreads",
        "1",
        "--dashboard-address",
        "127.0.0.1:0",
        "--no-nanny",
        "--local-directory",
        str(scheduler.parent / "dask"),
    )
    return running("worker", "--scheduler-file", str(scheduler), *words, **environment)


def command(*words):
    return subprocess.Popen(
        [sys.executable, PROGRAM, "study", "run", "drawn", "-o", "name", *words],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_scheduler_without_workers_is_one_line(scheduler):
    with command("--executor", f"dask:{address_of(scheduler)}") as process:
        _, err = process.communicate()
    assert process.returncode == ExitCode.UNREACHABLE
    assert err.splitlines()[0] == f"lumctl: the Dask scheduler at {address_of(scheduler)} has no workers"


def test_one_of_two_workers_is_killed_and_the_rows_are_equal(scheduler, tmp_path):
    out = tmp_path / "run"
    words = ["--set", "seconds=0.15", "--seeds", "20", "--out", str(out), "--executor", f"dask:{address_of(scheduler)}"]
    with ExitStack() as workers:
        first, _ = (workers.enter_context(worker(scheduler)) for _ in range(2))
        with command(*words) as process:
            while process.poll() is None and not (out / "cases.jsonl").exists():
                time.sleep(0.02)
            while process.poll() is None and (out / "cases.jsonl").read_bytes().count(b"\n") < 4:
                time.sleep(0.02)
            first.kill()
            _, err = process.communicate()
    assert (process.returncode, err) == (ExitCode.DONE, "")
    assert read_results(out)[2] == run_study(STUDY, STUDY.settings(["seeds=20"])).rows


def test_a_cluster_of_this_machine_finds_the_same_rows(tmp_path, require_extra):
    require_extra("studies", "distributed")
    with command("--executor", "dask", "--workers", "2", "--out", str(tmp_path / "run")) as process:
        _, err = process.communicate()
    assert (process.returncode, err) == (ExitCode.DONE, "")
    assert read_results(tmp_path / "run")[2] == run_study(STUDY, STUDY.settings()).rows


def test_a_worker_with_other_code_is_refused(scheduler, tmp_path):
    shutil.copytree(PROGRAM.parents[2] / "lumctl", tmp_path / "lumctl", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "lumctl" / "errors.py").open("a", encoding="utf-8") as code:
        code.write("# changed\n")
    with (
        worker(scheduler, PYTHONPATH=f"{tmp_path}{os.pathsep}{PROGRAM.parent}"),
        command("--executor", f"dask:{address_of(scheduler)}") as process,
    ):
        _, err = process.communicate()
    assert process.returncode == ExitCode.REFUSED
    assert err.endswith("has other code of lumctl, and may find other rows\n")
