"""What makes up one call of a driver has one deadline, however many requests it takes."""

import re
import time
from threading import Event, Thread

import pytest

from lumctl.devices.errors import DeviceBusyError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.netconf.shared_session import KeptSession
from lumctl.devices.protocols import DriverContext

TIMEOUT_S, GRACE_S = 0.4, 1.0


@pytest.fixture
def slow(opened):
    """A client of a server that answers an operation only when the test is over."""
    over = Event()

    def open_one(name):
        def answer(operation):
            if operation.startswith(f"<{name}"):
                over.wait(30)
            return "<ok/>"

        return opened(answer=answer, timeout_s=TIMEOUT_S)

    yield open_one
    over.set()


def elsewhere(act):
    """What a call gives in another thread, or the error that it raises."""
    said = []

    def run():
        try:
            said.append(act())
        except DeviceBusyError as error:
            said.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    return said[0]


@pytest.mark.parametrize("whole", ["turn", "call"])
def test_a_turn_within_a_turn_or_a_call_ends_with_it(whole):
    now = [100.0]
    kept = KeptSession(DriverContext("d", timeout_s=5.0), 830, lambda: now[0])
    assert kept.left_s() == 5.0
    with getattr(kept, whole)() as outer:
        now[0] = 103.0
        with kept.turn() as inner:
            assert (outer, inner) == (105.0, 105.0)
        with kept.call() as again:
            assert again == 105.0
        assert kept.left_s() == 2.0
        now[0] = 106.0
        assert kept.left_s() == -1.0
    assert kept.left_s() == 5.0
    with kept.turn() as later:
        assert later == 111.0


@pytest.mark.parametrize("whole", ["deadline", "one_call", "locked"])
def test_requests_of_one_call_share_its_time(opened, monkeypatch, whole):
    client, server = opened()
    client.commit()
    now = [0.0]
    monkeypatch.setattr(client._kept, "clock", lambda: now[0])
    monkeypatch.setattr(client._kept._session, "_clock", lambda: now[0])
    with getattr(client, whole)(*(["candidate"] if whole == "locked" else [])):
        now[0] += 0.6 * client._kept._timeout_s
        client.edit_config("<a/>")
        now[0] += 0.6 * client._kept._timeout_s
        with pytest.raises(DeviceUnreachableError, match="no answer in time; nothing was sent"):
            client.commit()
    assert sum("<commit" in each for each in server.operations) == 1


def test_a_deadline_is_of_its_thread_and_keeps_nobody_out(opened):
    now = [0.0]
    client, server = opened(answer=lambda _: "<data/>", clock=lambda: now[0])
    with client.deadline():
        now[0] = 4.0
        assert client.left_s() == 1.0
        assert elsewhere(client.left_s) == 5.0
        now[0] = 6.0
        assert elsewhere(lambda: client.get("")).tag.endswith("data")
        with pytest.raises(DeviceUnreachableError, match="no answer in time; nothing was sent"):
            client.get("")
    assert len(server.operations) == 1


def test_waiting_for_another_thread_counts(opened):
    client, server = opened(timeout_s=TIMEOUT_S)
    with client.one_call():
        started = time.monotonic()
        busy = elsewhere(client.commit)
        assert isinstance(busy, DeviceBusyError)
        assert TIMEOUT_S <= time.monotonic() - started < TIMEOUT_S + GRACE_S
    assert server.operations == []


@pytest.mark.parametrize(
    ("name", "error", "reached"),
    [
        ("lock", DeviceUnreachableError, ["lock"]),
        ("edit-config", DeviceUnreachableError, ["lock", "edit-config"]),
        ("commit", OutcomeUnknownError, ["lock", "edit-config", "commit"]),
        ("unlock", None, ["lock", "edit-config", "commit", "unlock"]),
    ],
)
def test_a_silence_ends_the_whole_call_and_hangs_up_instead_of_tidying_up(slow, name, error, reached):
    client, server = slow(name)
    said = None
    started = time.monotonic()
    with client.deadline():
        try:
            with client.locked("candidate"):
                client.edit_config("<a/>")
                client.commit()
        except (DeviceUnreachableError, OutcomeUnknownError) as caught:
            said = type(caught)
        assert client._kept._session is None
        with pytest.raises(DeviceUnreachableError):
            client.get("")
    assert TIMEOUT_S <= time.monotonic() - started < TIMEOUT_S + GRACE_S
    assert said is error
    assert [re.match(r"<([\w-]+)", each)[1] for each in server.operations] == reached
    assert client._kept.held == []


def test_where_no_time_is_left_to_tidy_up_it_hangs_up(opened):
    now = [0.0]
    client, server = opened(clock=lambda: now[0])
    with client.locked("candidate"):
        client.edit_config("<a/>")
        now[0] = 60.0
    assert [each for each in server.operations if "unlock" in each or "discard" in each] == []
    assert client._kept._session is None
    client.commit()
    assert server.sessions == 2
