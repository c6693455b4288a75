"""Locks, commits on trial and misbehaviour of the simulator's NETCONF server, by ncclient."""

import io

import paramiko
import pytest
from lxml import etree
from ncclient.operations import RPCError
from ncclient.operations.errors import TimeoutExpiredError
from ncclient.transport.errors import AuthenticationError, SessionCloseError, TransportError

from lumctl.devices.testing.checks import becomes_true
from lumctl.sim import ssh
from lumctl.sim.world.misbehaviour import Misbehaviour


def test_it_says_what_it_can_do(client, served, tmp_path):
    offered = set(client.server_capabilities)
    assert {"urn:ietf:params:netconf:base:1.0", "urn:ietf:params:netconf:base:1.1"} <= offered
    names = {each.rpartition("capability:")[2] for each in offered}
    assert {"candidate:1.0", "confirmed-commit:1.1", "validate:1.1", "rollback-on-error:1.0"} <= names
    plain = {
        each.rpartition("capability:")[2] for each in served(candidate=False).connect(tmp_path).server_capabilities
    }
    assert "writable-running:1.0" in plain
    assert not plain & {"candidate:1.0", "confirmed-commit:1.1"}


def test_a_lock_keeps_others_out_until_it_goes_with_its_session(shop, client, tmp_path, priced, prices):
    other = shop.connect(tmp_path)
    client.lock("candidate")
    client.edit_config(priced("pen", 3), target="candidate")
    with pytest.raises(RPCError) as refused:
        other.lock("candidate")
    assert refused.value.tag == "lock-denied"
    assert f">{client.session_id}<" in refused.value.info
    with pytest.raises(RPCError, match="locked by session"):
        other.edit_config(priced("pen", 5), target="candidate")
    with pytest.raises(RPCError, match="has not locked"):
        other.unlock("candidate")
    client.close_session()
    assert becomes_true(lambda: shop.server.sessions() == 1)
    assert prices(other, "candidate")["pen"] == "1"
    with other.locked("candidate"):
        pass


def test_a_candidate_that_somebody_left_dirty_is_not_locked(shop, client, tmp_path, priced):
    client.edit_config(priced("pen", 3), target="candidate")
    with pytest.raises(RPCError, match="contains uncommitted changes"):
        shop.connect(tmp_path).lock("candidate")


def test_a_killed_session_loses_its_lock(shop, client, tmp_path):
    other = shop.connect(tmp_path)
    other.lock("candidate")
    client.kill_session(other.session_id)
    client.lock("candidate")
    assert becomes_true(lambda: shop.server.sessions() == 1)
    with pytest.raises(RPCError, match="does not exist"):
        client.kill_session("4711")


def test_a_commit_on_trial_goes_back_when_its_time_is_over(shop, client, priced, prices):
    client.edit_config(priced("pen", 3), target="candidate")
    client.commit(confirmed=True, timeout="1")
    assert shop.shop.sold["pen"] == "3"
    assert becomes_true(lambda: shop.shop.sold["pen"] == "1")
    assert prices(client) == prices(client, "candidate") == {"pen": "1", "book": "20"}


def test_a_commit_on_trial_stays_when_it_is_confirmed(shop, client, priced):
    client.edit_config(priced("pen", 3), target="candidate")
    client.commit(confirmed=True, timeout="600")
    client.commit()
    with pytest.raises(RPCError, match="no commit is waiting"):
        client.cancel_commit()
    client.close_session()
    assert becomes_true(lambda: shop.server.sessions() == 0)
    assert shop.shop.sold["pen"] == "3"


@pytest.mark.parametrize("how", ["cancel", "dropped"])
def test_a_commit_on_trial_is_taken_back(shop, client, how, priced):
    client.edit_config(priced("pen", 3), target="candidate")
    client.commit(confirmed=True, timeout="600")
    if how == "cancel":
        client.cancel_commit()
    else:
        client._session.close()
    assert becomes_true(lambda: shop.shop.sold["pen"] == "1")


def test_a_trial_that_persists_is_for_whoever_knows_its_id(shop, client, tmp_path, priced):
    client.edit_config(priced("pen", 3), target="candidate")
    client.commit(confirmed=True, timeout="600", persist="ours")
    client._session.close()
    assert becomes_true(lambda: shop.server.sessions() == 0)
    other = shop.connect(tmp_path)
    assert shop.shop.sold["pen"] == "3"
    for wrong in (other.commit, lambda: other.commit(persist_id="theirs")):
        with pytest.raises(RPCError):
            wrong()
    other.edit_config(priced("book", 30), target="candidate")
    other.commit(confirmed=True, timeout="600", persist_id="ours")
    other.cancel_commit(persist_id="ours")
    assert shop.shop.sold == {"pen": "1", "book": "20"}


@pytest.mark.parametrize(
    ("kind", "sold", "said"),
    [
        ("lying", {"pen": "1", "book": "20"}, None),
        ("refuses", {"pen": "1", "book": "20"}, "no change is accepted"),
        ("half", {"pen": "3", "book": "20"}, "in the middle of the change"),
    ],
)
def test_misbehaviour_of_a_commit(shop, client, kind, sold, said, priced, prices):
    shop.conduct = Misbehaviour(**{kind: True})
    client.edit_config(priced("pen", 3), target="candidate")
    client.edit_config(priced("book", 30), target="candidate")
    if said is None:
        client.commit()
    else:
        with pytest.raises(RPCError, match=said):
            client.commit()
    assert shop.shop.sold == sold
    assert prices(client) == sold


def test_answers_that_are_cut_slow_or_garbage(shop, tmp_path):
    slow = shop.connect(tmp_path, timeout_s=0.3)
    shop.conduct = Misbehaviour(delay_s=30)
    with pytest.raises(TimeoutExpiredError):
        slow.get_config("running")
    shop.conduct = Misbehaviour()
    cut = shop.connect(tmp_path)
    shop.conduct = Misbehaviour(cuts=True)
    with pytest.raises((SessionCloseError, TransportError)):
        cut.get_config("running")
    shop.conduct = Misbehaviour()
    spoilt = shop.connect(tmp_path)
    shop.spoil = lambda _operation, _answer: b"\n#3\n<<<\n##\n"
    with pytest.raises(Exception, match=r"."):
        spoilt.get_config("running")


def test_a_password_lets_in_where_there_is_one_and_no_other_key_does(served, tmp_path):
    secret = "open sesame"  # noqa: S105 - of a server that lives as long as this test
    guarded = served(password=secret)
    assert guarded.connect(tmp_path, key_filename=None, password=secret).connected
    for wrong in ({"password": "other"}, {"key_filename": str(stranger(tmp_path))}):
        with pytest.raises(AuthenticationError):
            guarded.connect(tmp_path, **({"key_filename": None} | wrong))


def test_what_it_does_not_know_is_an_error_and_the_session_goes_on(client, prices):
    with pytest.raises(RPCError) as refused:
        client.dispatch(etree.fromstring("<reboot/>"))
    assert refused.value.tag == "operation-not-supported"
    with pytest.raises(RPCError, match="only subtree filters"):
        client.get_config("running", filter=("xpath", "/things"))
    assert prices(client)["pen"] == "1"


def stranger(folder):
    path = folder / "stranger"
    path.write_text(ssh.new_private_key())
    path.chmod(0o600)
    assert paramiko.Ed25519Key(file_obj=io.StringIO(path.read_text())) is not None
    return path
