"""Sessions that end, hang or talk nonsense: each call ends in time, with the error that tells what is known then."""

import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.netconf import NetconfClient
from lumctl.devices.protocols import DriverContext

DATA = "<data/>"
PROMPT_S = 3.0
"""Much more than the deadlines below, much less than for ever."""


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_reply_cut_at_any_point_leaves_a_write_unknown_and_a_read_unreachable(server_class, version):
    said = {}
    server = server_class(lambda op: said["commit" if "commit" in op else "get"], version=version)
    whole = {"commit": server.reply("<ok/>"), "get": server.reply(DATA)}
    for kind, error in (("commit", OutcomeUnknownError), ("get", DeviceUnreachableError)):
        for cut in range(len(whole[kind]) + 1):
            client = NetconfClient(DriverContext(device="d1", way=server))
            said[kind] = whole[kind][:cut]
            call = client.commit if kind == "commit" else lambda client=client: client.get("")
            if cut == len(whole[kind]):
                call()
            else:
                with pytest.raises(error) as caught:
                    call()
                assert type(caught.value) is error
            client.close()
    server.hang_up()


def test_a_hello_cut_at_any_point_is_unreachable(server_class):
    whole = server_class(offers=()).hello
    for cut in range(0, len(whole), 7):
        server = server_class(hello=whole[:cut])
        client = NetconfClient(DriverContext(device="d1", way=server, timeout_s=0.05))
        with pytest.raises(DeviceUnreachableError, match=r"no NETCONF session: .*; nothing was sent"):
            client.commit()
        client.close()
        server.hang_up()
        assert server.operations == []


@given(said=st.binary(min_size=1), version=st.sampled_from(["1.0", "1.1"]), begin=st.sampled_from([b"", b"\n#9\n"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_any_bytes_for_a_reply_are_one_of_our_errors(server_class, said, version, begin):
    server = server_class(lambda _: begin + said, version=version)
    for call, error in ((lambda c: c.commit(), OutcomeUnknownError), (lambda c: c.get(""), DeviceUnreachableError)):
        client = NetconfClient(DriverContext(device="d1", way=server, timeout_s=5))
        with pytest.raises(error) as caught:
            call(client)
        assert caught.value.message.isprintable()
        client.close()
    server.hang_up()


@given(said=st.binary())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_any_bytes_for_a_hello_are_unreachable(server_class, said):
    server = server_class(hello=said + b"]]>]]>")
    client = NetconfClient(DriverContext(device="d1", way=server))
    with pytest.raises(DeviceUnreachableError):
        client.get("")
    client.close()
    server.hang_up()


@pytest.mark.parametrize(
    "content",
    [
        '<rpc-reply xmlns="{ns}" message-id="7"><ok/></rpc-reply>',
        '<rpc-reply xmlns="{ns}"><ok/></rpc-reply>',
        '<rpc-reply message-id="1"><ok/></rpc-reply>',
        '<hello xmlns="{ns}"/>',
        '<rpc-reply xmlns="{ns}" message-id="1"></rpc-reply>',
        '<rpc-reply xmlns="{ns}" message-id="1"><ok xmlns="urn:x"/></rpc-reply>',
        '<!DOCTYPE a><rpc-reply xmlns="{ns}" message-id="1"><ok/></rpc-reply>',
    ],
)
def test_what_is_no_reply_to_this_request_is_no_yes(opened, content):
    client, server = opened(
        answer=lambda _: server.framed(content.format(ns="urn:ietf:params:xml:ns:netconf:base:1.0"))
    )
    with pytest.raises(OutcomeUnknownError):
        client.commit()
    with pytest.raises(DeviceUnreachableError):
        client.get("")


def test_a_late_reply_is_never_taken_for_the_next_ones(opened):
    late = threading.Event()

    def answer(_):
        if len(server.operations) == 1:
            late.wait(PROMPT_S)
        return "<ok/>"

    client, server = opened(answer=answer, timeout_s=0.1)
    with pytest.raises(OutcomeUnknownError, match="no answer in time"):
        client.commit()
    late.set()
    client.commit()
    assert server.sessions == 2


@pytest.mark.parametrize("piece", [b"", b"\n#1\nx"], ids=["nothing", "a drip"])
def test_a_device_that_drips_is_given_up_at_the_deadline(opened, piece):
    over = threading.Event()

    def answer(_):
        while not over.wait(0.01):
            server._open[-1].sendall(piece)

    client, server = opened(answer=answer, timeout_s=0.2)
    started = time.monotonic()
    with pytest.raises(OutcomeUnknownError):
        client.commit()
    assert time.monotonic() - started < PROMPT_S
    over.set()


def test_notifications_without_end_are_given_up_at_the_deadline(opened):
    over = threading.Event()
    ns = "urn:ietf:params:xml:ns:netconf:notification:1.0"

    def answer(_):
        while not over.is_set():
            server._open[-1].sendall(server.framed(f'<notification xmlns="{ns}"/>'))

    client, server = opened(answer=answer, timeout_s=0.2)
    started = time.monotonic()
    with pytest.raises(DeviceUnreachableError, match="no answer in time; nothing was changed"):
        client.get("")
    assert time.monotonic() - started < PROMPT_S
    over.set()


def test_a_message_without_end_is_given_up_at_its_limit(opened):
    def answer(_):
        for _ in range(200):
            server._open[-1].sendall(b"\n#65536\n" + b" " * 65536)

    client, server = opened(answer=answer)
    with pytest.raises(OutcomeUnknownError, match="more than 8388608 bytes"):
        client.commit()
