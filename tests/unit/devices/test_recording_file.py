"""The file of a recording: private, bounded, whole lines, and read with care."""

import json
import os
import stat
import threading

import pytest

from lumctl.devices.errors import DeviceError, DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.logins import Login
from lumctl.devices.protocols import DriverContext
from lumctl.devices.recording import record
from lumctl.devices.replay import ReplayTransponder, read_run
from lumctl.errors import RefusedError


def test_a_recording_is_private(taped, path, tmp_path, make_lamp, blink):
    taped(blink)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with pytest.raises(RefusedError, match="only you can read"):
        taped(blink)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(RefusedError, match="cannot write a recording"):
        record(make_lamp(), tmp_path / "link")


def test_the_secret_of_a_login_is_not_recorded(taped, path, monkeypatch, blink):
    monkeypatch.setenv("LAMP_PASSWORD", "ACME")
    replay = taped(blink, login=Login("admin", secret_variable="LAMP_PASSWORD"))  # noqa: S106 - a variable's name
    assert "ACME" not in path.read_text()
    replay.set_transmit(enabled=False)
    assert replay.read_optics().vendor == "(secret)"


def test_a_recording_that_reaches_its_limit_says_so_and_the_driver_goes_on(taped, path):
    replay = taped(lambda lamp: [lamp.set_transmit(enabled=True) for _ in range(100)], most_bytes=2000)
    assert path.stat().st_size < 2100
    kept = sum('"call"' in line for line in path.read_text().splitlines())
    assert 5 < kept < 50
    for _ in range(kept):
        replay.set_transmit(enabled=True)
    with pytest.raises(DeviceRefusedError, match="has reached 2000 bytes"):
        replay.set_transmit(enabled=True)


def test_a_full_disk_does_not_disturb_the_driver(monkeypatch, path, make_lamp):
    lamp = record(make_lamp(), path)
    whole = os.write
    monkeypatch.setattr(os, "write", lambda file, text: whole(file, text[:10]))
    lamp.set_transmit(enabled=False)
    monkeypatch.setattr(os, "write", whole)
    lamp.set_transmit(enabled=True)
    assert lamp.transmitting()
    lamp.close()
    replay = ReplayTransponder(DriverContext(device="t1", address=f"replay:{path}"))
    with pytest.raises(DeviceRefusedError, match="its last line is incomplete"):
        replay.set_transmit(enabled=False)


def test_each_call_has_its_time(path, make_lamp):
    ticks = iter([100.0, 100.5, 100.75, 101.0, 103.0])
    lamp = record(make_lamp(), path, device="t1", now=lambda: 4.0, clock=lambda: next(ticks))
    lamp.transmitting()
    lamp.set_transmit(enabled=False)
    lamp.close()
    begun, *calls = map(json.loads, path.read_text().splitlines())
    assert (begun["started_at"], begun["device"], begun["kind"]) == (4.0, "t1", "transponder")
    assert [(call["at"], call["took"]) for call in calls] == [(0.5, 0.25), (1.0, 2.0)]


def test_calls_of_several_threads_are_whole_lines(taped, path):
    def from_everywhere(lamp):
        threads = [threading.Thread(target=lambda: [lamp.read_optics() for _ in range(50)]) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    taped(from_everywhere)
    assert sum("answer" in json.loads(line) for line in path.read_text().splitlines()) == 200


BEGUN = '{"schema":"lumctl/device-recording/v1","kind":"transponder","capabilities":["read-optics"],"proven":"x"}\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "contains no recording"),
        ("\xff\xfe", "contains no recording"),
        ("hello\n", ":1 is not a line"),
        ("[]\n", ":1 is not a line"),
        ("[" * 100_000 + "\n", ":1 is not a line"),
        ("{}\n", "first line is not the header"),
        (BEGUN.replace("v1", "v9"), "its schema is"),
        (BEGUN.replace("transponder", "mesh"), "recorded a mesh, but a transponder is needed"),
        (BEGUN.replace("read-optics", "fly"), ":1 is not a line"),
        (BEGUN + '{"call":"fly","arguments":{},"answer":null}\n', "has no call 'fly'"),
        (BEGUN + '{"call":"read_optics","arguments":{},"answer":{"Person":{}}}\n', "'Person' is not a word"),
        (BEGUN + '{"call":"read_optics","arguments":{},"answer":{"OpticsReading":{}}}\n', ":2 is not a line"),
        (BEGUN + '{"call":"read_optics","arguments":7,"answer":null}\n', ":2 is not a line"),
        (BEGUN + '{"call":"read_optics","arguments":{}}\n', ":2 is not a line"),
        (BEGUN + '{"call":"read_optics","arguments":{},"error":{}}\n', ":2 is not a line"),
        (BEGUN + '{"call":"read_optics","arguments":{},"answer":' + "[" * 50 + "]" * 50 + "}\n", "too deeply"),
    ],
)
def test_what_is_no_recording_is_said_by_the_first_call(path, text, said):
    path.write_text(text, encoding="latin-1")
    replay = ReplayTransponder(DriverContext(device="t1", address=f"replay:{path}"))
    for call in (replay.read_optics, replay.transmitting):
        with pytest.raises(DeviceUnreachableError, match=said):
            call()
    replay.close()


def test_an_error_that_no_driver_may_raise_comes_back_as_one_that_it_may(path, make_lamp):
    lamp = make_lamp()

    def broken():
        raise ZeroDivisionError("division by zero")

    lamp.transmitting = broken
    lamp = record(lamp, path)
    with pytest.raises(ZeroDivisionError):
        lamp.transmitting()
    lamp.close()
    with pytest.raises(DeviceError, match="failed with ZeroDivisionError: division by zero"):
        ReplayTransponder(DriverContext(device="t1", address=f"replay:{path}")).transmitting()


def test_a_recording_is_too_large_to_be_one(path):
    path.write_text(BEGUN * 20)
    with pytest.raises(DeviceUnreachableError, match="exceeds the 100 bytes"):
        read_run(path, "transponder", most_bytes=100)
