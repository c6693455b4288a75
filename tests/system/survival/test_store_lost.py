"""The disk is full, the database is gone, in the midst of a swap: it is done, or undone, or says what it is not."""

import contextlib
import resource
import shutil
import subprocess
import time

import pytest
from crash_assertions import Lost
from crash_fixture import crash_rack_of
from postgres import Postgres

from lumctl.change.resumption import abort
from lumctl.cli.swap_show import run_row, shown_as_cut
from lumctl.errors import ExitCode

FEW = 2


@pytest.fixture
def commits(crash_rack):
    """The moments of a swap just before a transaction, and just after one, but for those of its lease."""
    moments = enumerate(crash_rack.moments("swap"), start=1)
    crash_rack.ready("swap")
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
        with crash_rack_of(tmp_path_factory.mktemp("crash_rack"), place=str(disk / "store")) as crash_rack:
            yield crash_rack, disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def empty_log(crash_rack):
    """Whatever is written next needs room."""
    with crash_rack.rack.store._engine.connect() as connection:
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("BEGIN")


def fill(file):
    with file.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(b"\0" * 4096):
            pass


def test_a_disk_that_is_full(yard_on_a_small_disk, sample, tell) -> None:
    crash_rack, disk = yard_on_a_small_disk
    lost, filler = Lost(crash_rack), disk / "filler"
    moments = [n for n, label in enumerate(crash_rack.moments("swap"), start=1) if "commit" in label]
    for number in sample(moments, FEW):
        empty_log(crash_rack)
        lost.at_moment(number, lambda: fill(filler), lambda: filler.unlink(missing_ok=True))
    tell(f"a full disk: {dict(sorted(lost.outcomes.items()))}")


def test_a_run_that_a_full_disk_stopped_is_listed_as_half_done_and_the_way_on_works(yard_on_a_small_disk) -> None:
    """At once: nobody has to wait until the lease of an engine ends that gave up."""
    crash_rack, disk = yard_on_a_small_disk
    filler, number = disk / "filler", crash_rack.moments("swap").index("after commit of advance") + 1
    plan = crash_rack.ready("swap")
    empty_log(crash_rack)
    status, said = crash_rack.run_alone(plan, lambda: fill(filler), at=number)
    run, store = crash_rack.newest(), crash_rack.rack.store
    assert (status, run.state) == (ExitCode.HALF_DONE, "running")  # by the store, which could not be told
    assert f"hint: free space on the disk of {disk / 'store' / 'lumctl.db'}; see what is left" in said
    assert store.runs.left_half_done() == store.runs.unfinished(now=time.time()) == (run.id,)
    rows = shown_as_cut([run_row(run)], store.runs.unfinished(now=time.time()), store.runs.left_half_done())
    assert [row["outcome"] for row in rows] == ["half-done"]
    filler.unlink()
    with crash_rack.rack.another_context() as context:
        abort(context, run)
    assert crash_rack.seen() == crash_rack.before
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
    crash_rack, _ = yard_on_a_small_disk
    ended = crash_rack.run(crash_rack.ready("swap"), place=str(read_only))
    assert (ended.status, ended.run) == (ExitCode.REFUSED, None)
    assert ended.said.startswith("the store cannot be written: Read-only file system")
    assert crash_rack.seen().differences(crash_rack.before) == {}


def test_a_file_that_may_not_grow(crash_rack, commits, sample, tell) -> None:
    lost = Lost(crash_rack)
    for number in sample(commits, FEW):
        empty_log(crash_rack)
        lost.at_moment(number, lambda: resource.prlimit(crash_rack.engine, resource.RLIMIT_FSIZE, (4096, 4096)))
    tell(f"a limit of the file's size: {dict(sorted(lost.outcomes.items()))}")


def test_a_database_that_is_moved_away(crash_rack, commits, sample, tell) -> None:
    lost, store = Lost(crash_rack), crash_rack.rack.folder / "store"
    away = store.with_name("away")

    def bring_back():
        if away.exists():
            shutil.rmtree(store, ignore_errors=True)
            away.rename(store)

    for number in sample(commits, FEW):
        ended = lost.at_moment(number, lambda: store.rename(away), bring_back)
        assert ended.status == 0 or "its file was removed" in ended.said
    tell(f"a database moved away: {dict(sorted(lost.outcomes.items()))}")


def test_a_server_that_has_stopped(postgres_of_our_own, tmp_path_factory, sample, tell) -> None:
    server = postgres_of_our_own
    with crash_rack_of(tmp_path_factory.mktemp("served"), place=server.fresh()) as crash_rack:
        lost = Lost(crash_rack)
        labels = crash_rack.moments("swap")
        for number in sample([n for n, label in enumerate(labels, start=1) if "commit" in label], 1):
            lost.at_moment(number, server.stop, server.start)
        tell(f"a server that has stopped: {dict(sorted(lost.outcomes.items()))}")


@pytest.fixture(scope="module")
def postgres_of_our_own(require_program):
    pytest.importorskip("psycopg")
    server = Postgres(require_program)
    yield server
    server.close()
