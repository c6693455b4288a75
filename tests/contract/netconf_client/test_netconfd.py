"""The NETCONF client against a server that nobody here wrote: netconfd of Debian behind OpenSSH."""

import dataclasses
import threading

import pytest
from netconf_joins import ALL, JOINS, held, joins, until, write

from lumctl.devices.errors import DeviceBusyError, DeviceRefusedError, DeviceUnreachableError, UnsupportedError
from lumctl.devices.netconf import NetconfClient


def test_what_it_says_of_itself(client):
    assert client.offers("candidate")
    assert client.offers("confirmed-commit", "1.1")
    assert not client.offers("confirmed-commit", "2")
    assert "urn:lumctl:joins?module=lumctl-joins&revision=2026-01-01" in client.capabilities()


class AtOnce:
    """A way on which the device reads our hello together with the first request."""

    def __init__(self, way):
        self._way = way

    def subsystem(self, *asked):
        self._stream, self._held = self._way.subsystem(*asked), []
        self.settimeout, self.recv, self.close = self._stream.settimeout, self._stream.recv, self._stream.close
        return self

    def sendall(self, data):
        self._held.append(data)
        if len(self._held) > 1:
            self._stream.sendall(b"".join(self._held))
            self._held = [b""]


def test_a_first_request_that_is_read_with_our_hello_is_answered(joins_server, client):
    """netconfd leaves it until more comes: one in some 300 sessions on a busy machine."""
    write(client, {1: 2})
    at_once = NetconfClient(joins_server.context("d9", way=AtOnce(joins_server.way())))
    assert held(at_once) == {1: 2}
    write(at_once, {3: 4})
    assert held(at_once) == {1: 2, 3: 4}
    at_once.close()


def test_an_edit_stands_in_the_candidate_until_it_is_committed(client):
    with client.locked("candidate"):
        client.edit_config(joins({1: 2, 3: 4}))
        assert (held(client, "candidate"), held(client)) == ({1: 2, 3: 4}, {})
        assert client.commit() == ""
    assert held(client) == {1: 2, 3: 4}
    with client.locked("candidate"):
        client.edit_config(JOINS.format('<join nc:operation="remove"><ingress>1</ingress></join>'))
        client.commit()
    assert held(client) == {3: 4}


def test_state_and_configuration_are_read_through_a_filter(client):
    write(client, {7: 8})
    everything = client.get("")
    assert len(everything) > 1
    assert [each.tag for each in client.get(ALL)] == ["{urn:lumctl:joins}joins"]


def test_what_is_not_committed_under_a_lock_is_discarded(client, opened):
    with client.locked("candidate"):
        client.edit_config(joins({1: 2}))
    other = opened()
    write(other, {3: 4})
    assert held(other) == {3: 4}
    other.edit_config(joins({5: 6}))
    other.discard()
    assert held(other, "candidate") == {3: 4}


def test_a_candidate_is_validated(client):
    client.validate()
    client.discard()


def test_who_holds_the_lock_is_told(client, opened):
    other = opened()
    with (
        client.locked("candidate"),
        pytest.raises(DeviceBusyError, match=r"lock-denied.*session-id \d+"),
        other.locked("running", "candidate"),
    ):
        pytest.fail("it was not locked")
    # What the other had locked before it was refused is free again.
    with client.locked("running", "candidate"):
        pass
    with other.locked("candidate"):
        pass


def test_a_lock_ends_with_its_session_and_so_does_what_was_to_follow(client, opened):
    with client.locked("candidate"):
        client.edit_config(joins({1: 2}))
        client.close()
        with pytest.raises(DeviceUnreachableError, match="discarded the lock; nothing was committed"):
            client.commit()
        with pytest.raises(DeviceUnreachableError, match="discarded the lock; nothing was committed"):
            client.edit_config(joins({3: 4}))
    assert held(client) == {}
    with opened().locked("candidate"):
        pass


def test_an_error_has_its_tag_and_path(client):
    with client.locked("candidate"):
        with pytest.raises(DeviceRefusedError, match=r"refused: invalid-value .*at /.*j:joins/j:join.*j:egress.*: "):
            client.edit_config(joins({1: 9999}))
        with pytest.raises(DeviceRefusedError, match=r"data-not-unique\) at /j:joins/j:join\[j:ingress='1'\]"):
            client.edit_config(joins({1: 2, 3: 2}))
        with pytest.raises(DeviceRefusedError, match="unknown-element"):
            client.edit_config(JOINS.format("<splice/>"))
    assert held(client) == {}


def test_a_running_configuration_that_cannot_be_written_is_told_before_anything_is_sent(client):
    with pytest.raises(UnsupportedError, match="writable-running; nothing was sent"):
        client.edit_config(joins({1: 2}), target="running")
    with pytest.raises(UnsupportedError, match="startup"):
        client.get_config("startup", "")


def test_a_large_configuration(client):
    many = {port: 801 - port for port in range(1, 801)}
    write(client, many)
    assert held(client) == many


def test_a_session_that_died_between_two_calls_is_replaced(client, joins_server):
    before = held(client)
    joins_server.end_sessions()
    assert until(lambda: not client._kept._session.alive())
    assert held(client) == before


def test_threads_take_turns(opened):
    shared, wrong = opened(), []

    def change(number):
        with shared.locked("running", "candidate"):
            shared.edit_config(JOINS.format(f"<join><ingress>{number}</ingress><egress>{number}</egress></join>"))
            if held(shared, "candidate").keys() - held(shared).keys() - {number}:
                wrong.append(number)
            shared.commit()

    threads = [threading.Thread(target=change, args=(number,)) for number in range(100, 110)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert set(range(100, 110)) <= held(shared).keys()


def test_nobody_there(joins_server, nobody):
    way = dataclasses.replace(joins_server.endpoint(), address=nobody)
    client = NetconfClient(joins_server.context(way=joins_server.way(way), address=nobody))
    with pytest.raises(DeviceUnreachableError, match="connection refused"):
        client.get("")
