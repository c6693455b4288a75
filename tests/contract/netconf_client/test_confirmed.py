"""Commits that netconfd undoes unless they are confirmed."""

import pytest
from netconf_joins import held, joins, until, write

from lumctl.devices.errors import DeviceBusyError, DeviceRefusedError


def test_a_confirmed_change_stays_from_the_same_session(client):
    assert write(client, {1: 2}, revert_after_s=60).startswith("lumctl-")
    assert held(client) == {1: 2}
    client.confirm()
    client.close()
    assert held(client) == {1: 2}


def test_a_change_is_confirmed_from_a_new_session_of_the_same_client(client):
    write(client, {1: 2}, revert_after_s=60)
    client.close()
    client.confirm()
    with pytest.raises(DeviceRefusedError):
        client.cancel("lumctl-another")
    assert held(client) == {1: 2}


def test_a_change_is_confirmed_by_another_client_that_knows_its_id(client, opened):
    persist_id = write(client, {1: 2}, revert_after_s=60)
    client.close()
    other = opened()
    with pytest.raises(DeviceRefusedError):
        other.confirm(f"not-{persist_id}")
    other.confirm(persist_id)
    assert held(other) == {1: 2}
    with pytest.raises(DeviceRefusedError):
        client.cancel()


def test_while_a_change_waits_nobody_else_commits(client, opened):
    write(client, {1: 2}, revert_after_s=60)
    other = opened()
    with pytest.raises(DeviceBusyError, match="in-use"):
        write(other, {3: 4})
    client.cancel()
    assert held(other) == {}


def test_a_change_is_cancelled(client):
    write(client, {1: 2})
    write(client, {1: 9, 3: 4}, revert_after_s=60)
    assert held(client) == {1: 9, 3: 4}
    client.cancel()
    assert held(client) == {1: 2}
    client.cancel()
    client.confirm()
    assert held(client) == {1: 2}


def test_a_change_is_cancelled_by_another_client_that_knows_its_id(client, opened):
    persist_id = write(client, {1: 2}, revert_after_s=60)
    client.close()
    other = opened()
    other.cancel(persist_id)
    assert held(other) == {}
    with pytest.raises(DeviceRefusedError):
        client.confirm()


def test_a_later_commit_confirms_what_waits_and_another_timer_takes_its_place(client):
    """Without a lock: netconfd gives none while a change waits."""
    for pairs, timer in (({1: 2}, 60), ({3: 4}, 60), ({5: 6}, None)):
        client.edit_config(joins(pairs))
        client.commit(revert_after_s=timer)
    client.close()
    assert held(client) == {1: 2, 3: 4, 5: 6}


def test_without_the_newer_timer_a_dropped_session_takes_the_change_back(client, opened):
    """As with a device of confirmed-commit:1.0: netconfd has both, and the client is told of one."""
    older = opened()
    only_1_0 = {uri for uri in client.capabilities() if "confirmed-commit:1.1" not in uri}
    with older._kept.turn() as deadline:
        older._kept.open(deadline).capabilities = frozenset(only_1_0)
    assert write(older, {1: 2}, revert_after_s=60) == ""
    assert held(client) == {1: 2}
    older.close()
    assert until(lambda: held(client) == {})
    with pytest.raises(DeviceRefusedError, match="the change was not confirmed in time"):
        older.confirm()


def test_cancelling_under_the_older_timer_ends_the_session(client, opened):
    older = opened()
    with older._kept.turn() as deadline:
        session = older._kept.open(deadline)
        session.capabilities = frozenset(uri for uri in session.capabilities if "confirmed-commit:1.1" not in uri)
    write(older, {1: 2}, revert_after_s=60)
    older.cancel()
    assert until(lambda: held(client) == {})
