"""The disk is full, the database is gone, in the midst of a swap: it is done, or undone, or says what it is not."""

import contextlib
import resource
import shutil
import subprocess
import time

import pytest
from fates import Lost
from postgres import Postgres
from yard import yard_on

from lumctl.change.resumption import abort
from lumctl.cli.swap_show import run_row
from lumctl.cli.unfinished_runs import shown_as_cut
from lumctl.errors import ExitCode

FEW = 2


@pytest.fixture
def commits(yard):
    """The moments of a swap just before a transaction, and just after one, but for those of its lease."""
    moments = enumerate(yard.moments("swap"), start=1)
    yard.ready("swap")
    return [number for number, label in moments if "commit" in label and "acquire" not in label]


def small_disk(folder):
    """Mount a small disk at a folder, where that is allowed."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], check=False, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    return folder


@pytest.fixture(scope="module")
def yard_on_a_small_disk(tmp_path_factory):
    disk = small_disk(tmp_path_factory.mktemp("small") / "disk")
    try:
        with yard_on(tmp_path_factory.mktemp("yard"), place=str(disk / "store")) as yard:
            yield yard, disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def empty_log(yard):
    """Whatever is written next needs room."""
    with yard.rack.store._engine.connect() as connection:
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("BEGIN")


def fill(file):
    with file.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(b"\0" * 4096):
            pass


def test_a_disk_that_is_full(yard_on_a_small_disk, sample, tell) -> None:
    yard, disk = yard_on_a_small_disk
    lost, filler = Lost(yard), disk / "filler"
    moments = [n for n, label in enumerate(yard.moments("swap"), start=1) if "commit" in label]
    for number in sample(moments, FEW):
        empty_log(yard)
        lost.at_moment(number, lambda: fill(filler), lambda: filler.unlink(missing_ok=True))
    tell(f"a full disk: {dict(sorted(lost.outcomes.items()))}")


def test_a_run_that_a_full_disk_stopped_is_listed_as_half_done_and_the_way_on_works(yard_on_a_small_disk) -> None:
    """At once: nobody has to wait until the lease of an engine ends that gave up."""
    yard, disk = yard_on_a_small_disk
    filler, number = disk / "filler", yard.moments("swap").index("after commit of advance") + 1
    plan = yard.ready("swap")
    empty_log(yard)
    status, said = yard.run_alone(plan, lambda: fill(filler), at=number)
    run, store = yard.newest(), yard.rack.store
    assert (status, run.state) == (ExitCode.HALF_DONE, "running")  # by the store, which could not be told
    assert f"hint: make room on the disk of {disk / 'store' / 'lumctl.db'}; see what is left" in said
    assert store.runs.left_half_done() == store.runs.unfinished(now=time.time()) == (run.id,)
    rows = shown_as_cut([run_row(run)], store.runs.unfinished(now=time.time()), store.runs.left_half_done())
    assert [row["outcome"] for row in rows] == ["half-done"]
    filler.unlink()
    with yard.rack.another_context() as context:
        abort(context, run)
    assert yard.seen() == yard.before
    assert (store.runs.left_half_done(), store.runs.unfinished(now=time.time())) == ((), ())
    assert not list((disk / "store").glob("unwritten-end*"))


@pytest.fixture
def read_only(yard_on_a_small_disk, tmp_path):
    """The same disk at another place, where nobody may write."""
    _, disk = yard_on_a_small_disk
    place = tmp_path / "read-only"
    place.mkdir()
    subprocess.run(["mount", "--bind", disk, place], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)
    yield place / "store"
    subprocess.run(["umount", "--lazy", place], check=True)


def test_a_folder_that_is_read_only(yard_on_a_small_disk, read_only) -> None:
    yard, _ = yard_on_a_small_disk
    ended = yard.run(yard.ready("swap"), place=str(read_only))
    assert (ended.status, ended.run) == (ExitCode.REFUSED, None)
    assert ended.said.startswith("the store cannot be written: Read-only file system")
    assert yard.seen().differences(yard.before) == {}


def test_a_file_that_may_not_grow(yard, commits, sample, tell) -> None:
    lost = Lost(yard)
    for number in sample(commits, FEW):
        empty_log(yard)
        lost.at_moment(number, lambda: resource.prlimit(yard.engine, resource.RLIMIT_FSIZE, (4096, 4096)))
    tell(f"a limit of the file's size: {dict(sorted(lost.outcomes.items()))}")


def test_a_database_that_is_moved_away(yard, commits, sample, tell) -> None:
    lost, store = Lost(yard), yard.rack.folder / "store"
    away = store.with_name("away")

    def bring_back():
        if away.exists():
            shutil.rmtree(store, ignore_errors=True)
            away.rename(store)

    for number in sample(commits, FEW):
        ended = lost.at_moment(number, lambda: store.rename(away), bring_back)
        assert ended.status == 0 or "its file is gone" in ended.said
    tell(f"a database moved away: {dict(sorted(lost.outcomes.items()))}")


def test_a_server_that_has_stopped(postgres_of_our_own, tmp_path_factory, sample, tell) -> None:
    server = postgres_of_our_own
    with yard_on(tmp_path_factory.mktemp("served"), place=server.fresh()) as yard:
        lost = Lost(yard)
        labels = yard.moments("swap")
        for number in sample([n for n, label in enumerate(labels, start=1) if "commit" in label], 1):
            lost.at_moment(number, server.stop, server.start)
        tell(f"a server that has stopped: {dict(sorted(lost.outcomes.items()))}")


@pytest.fixture(scope="module")
def postgres_of_our_own(require_program):
    pytest.importorskip("psycopg")
    server = Postgres(require_program)
    yield server
    server.close()
