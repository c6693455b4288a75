"""Commits that the device undoes unless they are confirmed: by an id, or in the older way by their session."""

import pytest

from lumctl.devices.errors import DeviceRefusedError


def test_a_timer_is_confirmed_by_its_id(opened):
    client, server = opened()
    persist_id = client.commit(revert_after_s=1.2)
    client.confirm()
    client.confirm()
    assert server.operations == [
        f"<commit><confirmed/><confirm-timeout>2</confirm-timeout><persist>{persist_id}</persist></commit>",
        f"<commit><persist-id>{persist_id}</persist-id></commit>",
    ]
    assert client.commit(revert_after_s=0.2) != persist_id
    client.cancel()
    assert "<confirm-timeout>1</confirm-timeout>" in server.operations[2]
    assert server.operations[3].startswith("<cancel-commit><persist-id>lumctl-")
    client.cancel()
    client.cancel("other")
    assert server.operations[4] == "<cancel-commit><persist-id>other</persist-id></cancel-commit>"


def test_a_timer_that_ran_out_confirms_nothing_with_the_next_commit(opened):
    now = [100.0]
    client, server = opened(clock=lambda: now[0])
    client.commit(revert_after_s=10)
    now[0] += 10
    client.commit()
    assert server.operations[-1] == "<commit/>"


def test_the_older_timer_is_confirmed_in_time_and_in_its_session_only(opened):
    now = [100.0]
    client, server = opened(offers=("candidate:1.0", "confirmed-commit:1.0"), clock=lambda: now[0])
    assert client.commit(revert_after_s=10) == ""
    client.confirm()
    assert server.operations == [
        "<commit><confirmed/><confirm-timeout>10</confirm-timeout></commit>",
        "<commit/>",
    ]
    client.commit(revert_after_s=10)
    now[0] += 10
    with pytest.raises(DeviceRefusedError, match="reverted"):
        client.confirm()
    client.commit(revert_after_s=10)
    client.close()
    with pytest.raises(DeviceRefusedError, match="reverted"):
        client.confirm()
    assert len(server.operations) == 4
    client.commit(revert_after_s=10)
    client.cancel()
    assert (server.sessions, len(server.operations)) == (2, 5)


def test_a_refused_timer_leaves_nothing_to_confirm(opened, rpc_error):
    client, server = opened(answer=lambda op: rpc_error("operation-failed") if "confirmed" in op else "<ok/>")
    with pytest.raises(DeviceRefusedError):
        client.commit(revert_after_s=5)
    client.confirm()
    assert len(server.operations) == 1
