"""The socket of a daemon: its newest observation in time or not at all, and whole."""

import json
import math
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.daemon.client import (
    LEFT_ALONE_S,
    TIMEOUT_S,
    ObservationClient,
    daemon_folder,
    decode,
    encode,
    has_died,
    observation_of,
    socket_path,
)
from lumctl.daemon.history import LatestObservation
from lumctl.daemon.service import observation_server
from lumctl.devices.types import Alarm, DeviceReading
from lumctl.errors import UsageError
from lumctl.health.acknowledgements import Acknowledgement, CoveredFinding, MaintenanceWindow
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory
from lumctl.sockets import MAX_CONNECTIONS

pytestmark = pytest.mark.usefixtures("short")


@pytest.fixture
def newest(clock):
    return LatestObservation(clock)


@pytest.fixture
def answering(short, seen, newest):
    path = socket_path(seen.inventory, "sim")
    assert path.is_relative_to(short)
    with observation_server(path, newest) as opened:
        yield opened


@pytest.mark.usefixtures("answering")
def test_the_newest_look_is_answered(seen, newest, pure):
    newest.put(seen.look())
    newer = seen.look(unfinished=("swap-0002",))
    newest.put(newer)
    assert observation_of(seen.inventory, "sim") == pure(newer)


def test_without_a_daemon_the_answer_is_none_at_once(seen):
    observation_of(seen.inventory, "sim")  # makes the folder, imports what it needs
    took = []
    for _ in range(5):
        began = time.perf_counter()
        assert observation_of(seen.inventory, "sim") is None
        took.append(time.perf_counter() - began)
    assert min(took) < 0.05


@pytest.mark.usefixtures("answering")
def test_before_the_first_look_there_is_none(seen):
    assert observation_of(seen.inventory, "sim") is None


@pytest.mark.usefixtures("answering")
def test_an_old_look_is_none(seen, newest, clock):
    newest.put(seen.look())
    clock.at += 9.9
    assert observation_of(seen.inventory, "sim", max_age_s=10) is not None
    clock.at += 0.2
    assert observation_of(seen.inventory, "sim", max_age_s=10) is None
    assert observation_of(seen.inventory, "sim", max_age_s=60) is not None


@pytest.mark.usefixtures("answering")
def test_another_text_of_the_inventory_is_none(seen, newest):
    newest.put(seen.look())
    assert observation_of(replace(seen.inventory, digest="0" * 64), "sim") is None


@pytest.mark.usefixtures("answering")
def test_another_version_of_the_program_is_none(seen, newest, monkeypatch):
    newest.put(seen.look())
    monkeypatch.setattr("lumctl.daemon.service.SCHEMA", "lumctl/daemon-state/v1 0.0.0")
    assert observation_of(seen.inventory, "sim") is None


@pytest.mark.usefixtures("answering")
def test_another_target_and_other_stores_are_another_daemon(seen, newest, monkeypatch):
    newest.put(seen.look())
    assert observation_of(seen.inventory, "rack") is None
    monkeypatch.setenv("LUMCTL_STATE", "/elsewhere")
    assert observation_of(seen.inventory, "sim") is None


def test_a_daemon_that_hangs_costs_no_more_than_the_time_limit(seen):
    path = socket_path(seen.inventory, "sim")
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(str(path))
        hung.listen(1)
        began = time.monotonic()
        assert observation_of(seen.inventory, "sim", timeout_s=0.2) is None
        assert 0.15 < time.monotonic() - began < 2


def test_a_daemon_that_drips_costs_no_more_than_the_time_limit(seen):
    path = socket_path(seen.inventory, "sim")
    path.parent.mkdir(mode=0o700)
    ended = threading.Event()
    with socket.socket(socket.AF_UNIX) as slow:
        slow.bind(str(path))
        slow.listen(1)

        def drip():
            connection, _ = slow.accept()
            with connection, suppress(OSError):
                while not ended.wait(0.02):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        began = time.monotonic()
        assert observation_of(seen.inventory, "sim", timeout_s=0.3) is None
        assert time.monotonic() - began < 3
        ended.set()
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\n",
        b"{}\n",
        b'{"length": "x"}\n',
        b'{"length": 4}\n{}',
        b'{"length": 2}\n{}',
        b'{"length": -1}\n',
    ],
)
def test_an_answer_that_makes_no_sense_is_none(seen, answer):
    path = socket_path(seen.inventory, "sim")
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as odd:
        odd.bind(str(path))
        odd.listen(1)

        def serve():
            connection, _ = odd.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert observation_of(seen.inventory, "sim", timeout_s=2) is None
        thread.join()


def test_no_private_folder_is_none(seen, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/proc/nowhere")
    assert observation_of(seen.inventory, "sim") is None


@pytest.mark.parametrize(
    "request_", [b"", b"\n", b"nonsense\n", b"{}\n", b"[]\n", b"x" * 5_000, b'{"schema": 1}\n'], ids=range(7)
)
@pytest.mark.usefixtures("answering")
def test_nonsense_is_no_trouble_of_the_daemon(seen, newest, request_):
    newest.put(seen.look())
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(socket_path(seen.inventory, "sim")))
        connection.sendall(request_)
    assert observation_of(seen.inventory, "sim") is not None


@pytest.mark.usefixtures("answering")
def test_who_asks_and_says_nothing_takes_one_place_only(seen, newest):
    newest.put(seen.look())
    silent = [socket.socket(socket.AF_UNIX) for _ in range(MAX_CONNECTIONS - 1)]
    for each in silent:
        each.connect(str(socket_path(seen.inventory, "sim")))
    assert observation_of(seen.inventory, "sim") is not None
    for each in silent:
        each.close()


def test_what_a_killed_daemon_left_is_replaced_and_the_end_leaves_nothing(seen, newest):
    path = socket_path(seen.inventory, "sim")
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    assert observation_of(seen.inventory, "sim") is None
    with observation_server(path, newest):
        newest.put(seen.look())
        assert observation_of(seen.inventory, "sim") is not None
    assert list(path.parent.iterdir()) == []


def test_the_end_of_a_daemon_leaves_the_socket_of_another_that_has_replaced_its_own(seen, newest, clock):
    path = socket_path(seen.inventory, "sim")
    earlier = observation_server(path, newest)
    later = LatestObservation(clock)
    with observation_server(path, later):
        later.put(seen.look())
        earlier.close()
        assert observation_of(seen.inventory, "sim") is not None
    assert list(path.parent.iterdir()) == []


def test_a_daemon_that_was_killed_is_told_from_one_that_ended_and_from_none(seen, newest):
    path = socket_path(seen.inventory, "sim")
    assert not has_died(seen.inventory, "sim")
    path.parent.mkdir(mode=0o700)
    with observation_server(path, newest):
        assert not has_died(seen.inventory, "sim")
    assert not has_died(seen.inventory, "sim")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    assert has_died(seen.inventory, "sim")
    assert not has_died(seen.inventory, "rack")
    path.unlink()
    path.write_text("a file in the way")
    assert not has_died(seen.inventory, "sim")


@pytest.mark.usefixtures("answering")
def test_only_the_owner_may_enter(seen):
    path = socket_path(seen.inventory, "sim")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.usefixtures("answering")
def test_somebody_else_is_not_let_in_even_if_the_folders_are_open(seen, short):
    path = socket_path(seen.inventory, "sim")
    for folder in (path.parent, path.parent.parent, short):
        folder.chmod(0o755)
    script = "import os, socket, sys; os.setuid(65534); socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, check=False)
    assert b"PermissionError" in done.stderr


def test_a_name_that_is_too_long_for_a_socket_is_said(newest, tmp_path):
    with pytest.raises(UsageError, match="cannot create a socket") as told:
        observation_server(tmp_path / ("x" * 100) / "state.sock", newest)
    assert "XDG_RUNTIME_DIR" in told.value.hint


@pytest.mark.usefixtures("answering")
def test_a_look_is_encoded_once_for_all_who_ask(seen, newest, monkeypatch):
    calls = []
    monkeypatch.setattr("lumctl.daemon.history.encode", lambda look: calls.append(look) or b'{"x": 1}')
    newest.put(seen.look())
    for _ in range(3):
        observation_of(seen.inventory, "sim")
    assert len(calls) == 1


@pytest.mark.usefixtures("answering")
def test_the_header_names_the_daemon(seen, newest):
    newest.put(seen.look())
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(socket_path(seen.inventory, "sim")))
        connection.sendall(b'{"schema": "other", "digest": "", "max_age_s": 1}\n')
        header = json.loads(connection.makefile().readline())
    assert (header["pid"], header["length"]) == (os.getpid(), 0)


def test_the_folder_is_the_same_however_the_inventory_is_named(seen, monkeypatch):
    absolute = daemon_folder(seen.inventory, "sim")
    monkeypatch.chdir(seen.inventory.path.parent)
    assert daemon_folder(replace(seen.inventory, path=Path(seen.inventory.path.name)), "sim") == absolute


def test_a_daemon_that_hung_is_left_alone_for_a_while(clock):
    asked = []

    def hang():
        asked.append(clock.at)
        clock.at += TIMEOUT_S

    asking = ObservationClient(hang, clock)
    assert asking() is None
    assert asking() is None
    clock.at += LEFT_ALONE_S
    asking()
    assert len(asked) == 2


def test_where_no_daemon_runs_it_is_asked_each_time(clock):
    asked = []
    asking = ObservationClient(lambda: asked.append(1), clock)
    asking()
    asking()
    assert len(asked) == 2


@pytest.mark.parametrize("name", ["prototype", "rack64"])
def test_a_look_arrives_as_it_was_but_for_unread_leaves(seen_of, pure, name):
    seen = seen_of(name)
    seen.group(next(iter(seen.inventory.hosts)), *list(seen.inventory.accelerators)[:3])
    seen.silent_hosts.add(list(seen.inventory.hosts)[-1])
    look = seen.look(
        unfinished=("swap-0001",),
        acknowledgements=(
            Acknowledgement("h", None, "ops", "known", 1.0, None),
            Acknowledgement("g", "gpu.lost", "ops", "x", 1.0, 2.0, (CoveredFinding("g", "gpu.lost", "", "failed"),)),
        ),
        windows=(MaintenanceWindow("w", "h", "ops", "", 1.0, 2.0),),
        devices={
            "d": DeviceReading(1.0, None, 1.0, (Alarm("psu", "CRITICAL", "", 0.5),), 31.0, {3: -math.inf}, {"x": "y"}),
            "e": DeviceReading(1.0, "gone"),
        },
    )
    data = encode(look)
    assert b"new_field" not in data
    back = decode(data, seen.inventory)
    assert back == pure(look)
    assert back.report.circuits[seen.circuits[0].id].ends[1].rx_power_dbm == -math.inf
    assert back.report.accelerators[seen.incidents[0].members[0]].state is State.FAILED


NUMBERS = st.floats(allow_nan=False)


@settings(max_examples=50)
@given(at=NUMBERS, seconds=NUMBERS, losses=st.dictionaries(st.text(max_size=5), NUMBERS, max_size=3), text=st.text())
def test_any_number_and_any_text_survive(at, seconds, losses, text):
    look = replace(LOOK, at=at, losses=losses, not_kept=text, snapshot=replace(LOOK.snapshot, seconds=seconds))
    assert decode(encode(look), LOOK.inventory) == look


@pytest.mark.parametrize("data", [b"", b"null", b"{}", b"[1]", b"\xff\xfe", b'{"at": "soon"}', b"[" * 10_000])
def test_what_is_no_look_is_a_value_error(data):
    with pytest.raises(ValueError, match=r"."):
        decode(data, LOOK.inventory)


def test_a_look_cut_short_is_none():
    data = encode(LOOK)
    json.loads(data)
    with pytest.raises(ValueError, match=r"."):
        decode(data[:-1], LOOK.inventory)


def _empty_look():
    from lumctl.fleet.readings import Snapshot
    from lumctl.health.observation import Observation
    from lumctl.health.states import HealthReport

    inventory = load_inventory(example("prototype"))
    return Observation(0.0, "sim", inventory, {}, (), {}, Snapshot(0.0, 0.0, {}), HealthReport(0.0, {}, {}, {}, {}, {}))


LOOK = _empty_look()
