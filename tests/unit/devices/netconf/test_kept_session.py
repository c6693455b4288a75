"""The kept session: replaced when nothing was lost with it, and never when something was."""

import threading

import pytest

from lumctl.devices.errors import DeviceError, DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError

PROMPT_S = 3.0


def test_a_session_that_died_between_two_calls_is_replaced(opened):
    client, server = opened()
    client.commit()
    server.hang_up()
    client.commit()
    assert (server.sessions, len(server.operations)) == (2, 2)


def test_a_notification_that_comes_in_halves_before_and_after_a_request_is_no_death(opened):
    ns = "urn:ietf:params:xml:ns:netconf:notification:1.0"
    client, server = opened(
        answer=lambda _: whole[9:] + server.reply("<ok/>", 2) if len(server.operations) > 1 else "<ok/>"
    )
    whole = server.framed(f'<notification xmlns="{ns}"/>')
    client.commit()
    server._open[-1].sendall(whole[:9])
    client.commit()
    assert server.sessions == 1


def test_what_was_edited_on_a_session_that_died_is_not_committed_on_another(opened):
    client, server = opened()
    client.edit_config("<a/>")
    server.hang_up()
    with pytest.raises(DeviceUnreachableError, match="discarded what was not committed; nothing was committed"):
        client.commit()
    client.commit()
    assert len(server.operations) == 2


def test_nothing_is_sent_under_a_lock_that_was_lost(opened):
    client, server = opened()
    with client.locked("candidate"):
        server.hang_up()
        for call in (lambda: client.edit_config("<a/>"), client.commit, lambda: client.get("")):
            with pytest.raises(DeviceUnreachableError, match="discarded the lock"):
                call()
    assert (server.sessions, len(server.operations)) == (1, 1)
    client.commit()


def test_an_edit_that_was_cut_is_harmless_only_under_a_lock(opened):
    client, _ = opened(answer=lambda op: None if "edit" in op else "<ok/>")
    with pytest.raises(OutcomeUnknownError):
        client.edit_config("<a/>")
    with pytest.raises(DeviceUnreachableError, match="nothing was changed"), client.locked("candidate"):
        client.edit_config("<a/>")


def test_after_a_cut_timer_there_is_something_to_cancel(opened):
    client, server = opened(answer=lambda op: None if "confirmed" in op else "<ok/>")
    with pytest.raises(OutcomeUnknownError):
        client.commit(revert_after_s=30)
    client.cancel()
    assert server.operations[1].startswith("<cancel-commit><persist-id>lumctl-")


def test_the_older_timer_is_not_confirmed_over_another_session(opened):
    client, server = opened(
        answer=lambda op: None if "confirmed" in op else "<ok/>", offers=("candidate:1.0", "confirmed-commit:1.0")
    )
    with pytest.raises(OutcomeUnknownError):
        client.commit(revert_after_s=30)
    with pytest.raises(DeviceRefusedError, match="reverted it"):
        client.confirm()
    assert len(server.operations) == 1


def test_closing_wakes_whoever_waits(opened):
    asked, over = threading.Event(), threading.Event()

    def answer(_):
        asked.set()
        over.wait(PROMPT_S)

    client, _ = opened(answer=answer, timeout_s=60)
    failed = []

    def call():
        try:
            client.commit()
        except DeviceError as error:
            failed.append(type(error))

    waiting = threading.Thread(target=call)
    waiting.start()
    assert asked.wait(PROMPT_S)
    client.close()
    waiting.join(PROMPT_S)
    over.set()
    assert failed == [OutcomeUnknownError]


def test_an_interrupt_ends_the_session(opened, monkeypatch):
    client, server = opened()
    client.commit()
    session = client._kept._session
    monkeypatch.setattr(session, "call", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        client.commit()
    client.commit()
    assert server.sessions == 2


def test_a_request_that_could_not_be_sent_whole_changed_nothing(opened, monkeypatch):
    client, server = opened()
    client.commit()

    def cut(_):
        raise ConnectionResetError("connection reset by peer")

    monkeypatch.setattr(client._kept._session._stream, "sendall", cut)
    with pytest.raises(DeviceUnreachableError, match="connection reset by peer; nothing was sent"):
        client.commit(revert_after_s=5)
    client.confirm()
    client.commit()
    assert (server.sessions, server.operations) == (2, ["<commit/>"] * 2)


def test_closing_while_it_connects_leaves_no_session(opened, server_class):
    class Slow(server_class):
        def subsystem(self, *asked):
            client.close()
            return super().subsystem(*asked)

    client, server = opened(server=Slow())
    with pytest.raises(DeviceUnreachableError, match="the session was closed; nothing was sent"):
        client.commit()
    assert server.operations == []
    assert client._kept._session is None
