"""What the client sends and makes of the answers; what it refuses before anything is sent."""

import threading

import pytest

from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)

DATA = '<data><a xmlns="urn:x">1</a></data>'
EDIT = "<edit-config><target><candidate/></target><error-option>rollback-on-error</error-option><config>{}</config>"


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_reads(opened, version):
    client, server = opened(answer=lambda _: DATA, version=version)
    assert client.get("")[0].text == "1"
    assert client.get_config("running", '<a xmlns="urn:x"/>').tag.endswith("data")
    assert server.operations == [
        "<get></get>",
        '<get-config><source><running/></source><filter type="subtree"><a xmlns="urn:x"/></filter></get-config>',
    ]
    assert server.sessions == 1


def test_a_change_from_lock_to_unlock(opened):
    client, server = opened()
    with client.locked("running", "candidate"):
        client.edit_config("<a/>")
        client.validate()
        client.commit()
    assert server.operations == [
        "<lock><target><running/></target></lock>",
        "<lock><target><candidate/></target></lock>",
        EDIT.format("<a/>") + "</edit-config>",
        "<validate><source><candidate/></source></validate>",
        "<commit/>",
        "<unlock><target><candidate/></target></unlock>",
        "<unlock><target><running/></target></unlock>",
    ]


def test_what_was_not_committed_is_discarded_before_the_unlock(opened, rpc_error):
    client, server = opened(answer=lambda op: rpc_error("operation-failed") if "edit" in op else "<ok/>")
    with pytest.raises(DeviceRefusedError), client.locked("candidate"):
        client.edit_config("<a/>")
    assert server.operations[-2:] == ["<discard-changes/>", "<unlock><target><candidate/></target></unlock>"]


def test_an_unlock_that_fails_ends_the_session(opened, rpc_error):
    client, server = opened(answer=lambda op: rpc_error("operation-failed") if "unlock" in op else "<ok/>")
    with client.locked("candidate"):
        pass
    client.discard()
    assert server.sessions == 2


@pytest.mark.parametrize(
    ("offers", "call", "lacking"),
    [
        (("candidate:1.0",), lambda c: c.commit(revert_after_s=5), "confirmed-commit"),
        ((), lambda c: c.commit(revert_after_s=5), "candidate"),
        ((), lambda c: c.commit(), "candidate"),
        ((), lambda c: c.discard(), "candidate"),
        ((), lambda c: c.edit_config("<a/>"), "candidate"),
        ((), lambda c: c.locked("running", "candidate").__enter__(), "candidate"),
        ((), lambda c: c.edit_config("<a/>", target="running"), "writable-running"),
        ((), lambda c: c.validate(), "validate"),
        ((), lambda c: c.get_config("startup", ""), "startup"),
        ((), lambda c: c.get_config("nowhere", ""), "nowhere"),
    ],
)
def test_what_the_device_lacks_is_told_before_anything_is_sent(opened, offers, call, lacking):
    client, server = opened(offers=offers)
    with pytest.raises(UnsupportedError, match=f"d1 at d1.example:830: the device has no {lacking}; nothing was sent"):
        call(client)
    assert server.operations == []


@pytest.mark.parametrize("fragment", ["<a>", "</config>", "<a/>]]>]]>", "\ud800", "<!DOCTYPE a><a/>"])
def test_what_is_not_well_formed_is_not_sent(opened, fragment):
    client, server = opened()
    for call in (client.get, client.edit_config, client.call):
        with pytest.raises(DeviceRefusedError, match="nothing was sent"):
            call(fragment)
    assert server.sessions == 0


@pytest.mark.parametrize(
    ("tag", "kind"),
    [
        ("lock-denied", DeviceBusyError),
        ("in-use", DeviceBusyError),
        ("access-denied", DeviceRefusedError),
        ("operation-failed", DeviceRefusedError),
        ("rollback-failed", InconsistentError),
        ("partial-operation", InconsistentError),
        ("", DeviceRefusedError),
    ],
)
def test_refusals_are_of_their_kind(opened, rpc_error, tag, kind):
    client, _ = opened(answer=lambda _: rpc_error(tag, path="/x:a/x:b[x:c='1']", message="no\n way"))
    with pytest.raises(kind) as caught:
        client.commit()
    assert type(caught.value) is kind
    assert caught.value.message.startswith(
        f"d1 at d1.example:830: refused: {tag or 'no error-tag'} at /x:a/x:b[x:c='1']: no way"
    )


def test_the_first_of_several_errors_is_told_and_the_worst_counts(opened, rpc_error):
    said = [rpc_error("in-use") + rpc_error("access-denied"), rpc_error("in-use") + rpc_error("rollback-failed")]
    client, _ = opened(answer=lambda _: said.pop(0))
    with pytest.raises(DeviceBusyError, match=r"in-use \(and 1 more\)"):
        client.commit()
    with pytest.raises(InconsistentError, match="rollback-failed"):
        client.commit()


def test_who_is_in_the_way_is_told(opened, rpc_error):
    info = '<session-id>7</session-id><number xmlns="urn:vendor">9</number>'
    client, _ = opened(answer=lambda _: rpc_error("lock-denied", info=info))
    with pytest.raises(DeviceBusyError, match=r"lock-denied \(session-id 7\)$"), client.locked("candidate"):
        pytest.fail("it was not locked")


def test_a_hostile_text_in_an_error_stays_short_and_printable(opened, rpc_error):
    client, _ = opened(answer=lambda _: rpc_error("a" * 10_000, message="\u202e\u009b31m" + "b" * 10_000, path="\n\n"))
    with pytest.raises(DeviceRefusedError) as caught:
        client.commit()
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 600


def test_warnings_are_no_refusal(opened, rpc_error):
    client, _ = opened(answer=lambda _: rpc_error("operation-failed", severity="warning") + "<ok/>")
    client.commit()


def test_a_device_that_does_not_undo_leaves_a_refused_edit_in_doubt(opened, rpc_error):
    client, _ = opened(answer=lambda _: rpc_error("invalid-value"), offers=("writable-running:1.0",))
    with pytest.raises(OutcomeUnknownError, match="does not undo"):
        client.edit_config("<a/>", target="running")
    client, server = opened(
        answer=lambda _: rpc_error("invalid-value"), offers=("writable-running:1.0", "rollback-on-error:1.0")
    )
    with pytest.raises(DeviceRefusedError):
        client.edit_config("<a/>", target="running")
    assert "<error-option>rollback-on-error</error-option>" in server.operations[0]
    client, _ = opened(answer=lambda _: rpc_error("in-use"), offers=("writable-running:1.0",))
    with pytest.raises(DeviceBusyError):
        client.edit_config("<a/>", target="running")


def test_one_thread_waits_for_another_only_so_long(opened):
    client, _ = opened(timeout_s=0.1)
    refused = []

    def call():
        try:
            client.commit()
        except DeviceBusyError as error:
            refused.append(error.message)

    with client.locked("candidate"):
        other = threading.Thread(target=call)
        other.start()
        other.join()
    assert refused == ["d1 at d1.example:830: another call of this program is still in progress; nothing was sent"]


def test_notifications_are_passed_over(opened):
    ns = "urn:ietf:params:xml:ns:netconf:notification:1.0"

    def answer(_):
        said = server.framed(f'<notification xmlns="{ns}"><eventTime/></notification>') * 3
        return said + server.reply("<ok/>")

    client, server = opened(answer=answer)
    client.commit()


def test_a_call_may_be_made_after_closing(opened):
    client, server = opened()
    client.close()
    client.commit()
    client.close()
    client.close()
    client.commit()
    assert server.sessions == 2


def test_no_way_at_all_is_unreachable(opened):
    class Nowhere:
        def subsystem(self, *_):
            raise ConnectionRefusedError("nobody is there")

    client, _ = opened(server=None)
    client._kept._way = Nowhere()
    with pytest.raises(DeviceUnreachableError, match="no NETCONF session: nobody is there; nothing was sent"):
        client.capabilities()
