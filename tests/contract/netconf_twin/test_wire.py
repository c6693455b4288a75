"""The simulator's NETCONF server, byte by byte: both framings, and clients that keep to neither."""

import contextlib

import pytest

BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
END = b"]]>]]>"


def hello(minor):
    capability = f"<capability>urn:ietf:params:netconf:base:1.{minor}</capability>"
    return f'<hello xmlns="{BASE}"><capabilities>{capability}</capabilities></hello>'.encode() + END


def rpc(content, attributes='message-id="1"'):
    return f'<rpc xmlns="{BASE}" {attributes}>{content}</rpc>'.encode()


def chunked(data, size=7):
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"\n#%d\n%b" % (len(piece), piece) for piece in pieces) + b"\n##\n"


def until(channel, mark, *, times=1):
    came = b""
    while came.count(mark) < times:
        piece = channel.recv(4096)
        assert piece, came
        came += piece
    return came


def ended(channel):
    """Whether the server hangs up; what it says before that does not matter."""
    while channel.recv(4096):
        pass
    return True


def test_the_end_mark_is_kept_to_where_the_client_knows_no_other(shop):
    channel = shop.raw()
    assert b"base:1.1" in until(channel, END)
    for piece in (hello(0)[:30], hello(0)[30:], rpc("<get-config><source><running/></source></get-config>")[:40]):
        channel.sendall(piece)
    channel.sendall(rpc("<get-config><source><running/></source></get-config>")[40:] + END)
    answer = until(channel, END)
    assert answer.endswith(b"rpc-reply>" + END)
    assert b"pen" in answer


def test_chunks_of_any_size_are_put_together(shop):
    channel = shop.raw()
    until(channel, END)
    channel.sendall(hello(1) + chunked(rpc("<get/>")) + chunked(rpc("<get/>", 'message-id="2"'), size=1000))
    assert b'message-id="2"' in until(channel, b"\n##\n", times=2)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (rpc("<get/>", ""), b"missing-attribute"),
        (rpc(""), b"missing-element"),
        (rpc("<get-config/>"), b"missing-element"),
        (rpc("<get-config><source><startup/></source></get-config>"), b"invalid-value"),
        (rpc('<get xmlns="urn:other"/>'), b"operation-not-supported"),
        (rpc("<commit><confirmed/><confirm-timeout>0</confirm-timeout></commit>"), b"invalid-value"),
    ],
)
def test_a_request_that_makes_no_sense_is_answered_and_the_session_goes_on(shop, sent, said):
    channel = shop.raw()
    until(channel, END)
    channel.sendall(hello(1) + chunked(sent))
    assert said in until(channel, b"\n##\n")
    channel.sendall(chunked(rpc("<get/>")))
    assert b"pen" in until(channel, b"\n##\n")


@pytest.mark.parametrize(
    "sent",
    [
        b"no chunk at all, but long enough to tell",
        b"\n#9999999999\n",
        chunked(b"<rpc"),
        chunked(b"\xff\xfe\x00"),
        chunked(b'<!DOCTYPE a [<!ENTITY b "c">]><rpc>&b;</rpc>'),
        chunked(b"x" * (5 * 1024 * 1024), size=1024 * 1024),
    ],
    ids=["not a chunk", "a huge chunk", "half an element", "not text", "entities", "too much"],
)
def test_nonsense_ends_its_own_session_only(shop, client, prices, sent):
    channel = shop.raw()
    until(channel, END)
    with contextlib.suppress(OSError):  # it may hang up while there is still something to send
        channel.sendall(hello(1) + sent)
    assert ended(channel)
    assert prices(client)["pen"] == "1"


def test_whoever_says_something_else_than_hello_is_cut(shop):
    channel = shop.raw()
    until(channel, END)
    channel.sendall(rpc("<get/>") + END)
    assert ended(channel)


def test_the_last_answer_of_a_session_is_ok(shop):
    channel = shop.raw()
    until(channel, END)
    channel.sendall(hello(0) + rpc("<close-session/>") + END)
    assert b"ok" in until(channel, END)
    assert ended(channel)
