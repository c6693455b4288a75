import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.devices.netconf.messages import rpc
from lumctl.devices.netconf.session import MARK, FramingError, NetconfFrames

MESSAGES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda t: "]" not in t))
CUTS = st.lists(st.integers(1, 9), min_size=1)
HOSTILE = st.lists(
    st.one_of(st.binary(max_size=20), st.sampled_from([b"\n#", b"##\n", b"\n", b"7\n", b"0", b"]]>]]>", b"]]>"]))
)


def heard(frames, data, cuts=(10**9,)):
    """The messages that come of some bytes when these arrive in pieces."""
    found, at, turn = [], 0, 0
    while at < len(data):
        frames.feed(data[at : at + cuts[turn % len(cuts)]])
        at += cuts[turn % len(cuts)]
        turn += 1
        while (message := frames.next()) is not None:
            found.append(message)
    return found


def chunked(**options):
    frames = NetconfFrames(**options)
    frames.use_chunks()
    return frames


@given(st.lists(st.tuples(st.sampled_from("<x"), st.integers(0, 7))), CUTS, st.booleans())
def test_the_beginning_of_a_message_may_be_sent_ahead_of_it(messages, cuts, in_chunks):
    near, far = (chunked(), chunked()) if in_chunks else (NetconfFrames(), NetconfFrames())
    sent = b"".join(
        b"".join(near.ahead() for _ in range(ahead)) + near.encode(rpc(number, text))
        for number, (text, ahead) in enumerate(messages)
    )
    # To the byte: XML allows nothing before its declaration.
    assert [each.decode() for each in heard(far, sent, cuts)] == [rpc(n, text) for n, (text, _) in enumerate(messages)]


@given(MESSAGES, CUTS, st.booleans())
def test_what_one_end_frames_the_other_finds_however_it_is_cut(messages, cuts, in_chunks):
    near, far = (chunked(), chunked()) if in_chunks else (NetconfFrames(), NetconfFrames())
    sent = b"".join(near.encode(message) for message in messages)
    assert [each.decode() for each in heard(far, sent, cuts)] == messages


@given(st.lists(st.binary(min_size=1), min_size=1), CUTS)
def test_chunks_of_any_size_make_one_message_whatever_is_in_them(chunks, cuts):
    sent = b"".join(b"\n#%d\n%b" % (len(chunk), chunk) for chunk in chunks) + b"\n##\n"
    assert heard(chunked(), sent * 2, cuts) == [b"".join(chunks)] * 2


def test_the_hello_ends_at_the_mark_and_chunks_follow():
    frames = NetconfFrames()
    assert heard(frames, b"hello" + MARK + b"\n#2") == [b"hello"]
    frames.use_chunks()
    assert heard(frames, b"\nab\n##\n") == [b"ab"]
    assert frames.encode("é") == b"\n#2\n\xc3\xa9\n##\n"


@pytest.mark.parametrize(
    "garbage",
    [
        b"<xml/>",
        b"\n\n",
        b"\n#0\n",
        b"\n#01\n",
        b"\n#x",
        b"\n#-1\n",
        b"\n##\n",
        b"\n#99999999999\n",
        b"\n#1\nab",
        b"\r\n",
    ],
)
def test_what_is_no_chunk_is_refused_as_soon_as_it_can_be_told(garbage):
    with pytest.raises(FramingError):
        heard(chunked(), garbage, (1,))


def test_a_message_is_no_larger_than_the_limit():
    assert heard(NetconfFrames(limit=10), b"0123456789" + MARK, (1,)) == [b"0123456789"]
    assert heard(chunked(limit=10), b"\n#5\n01234\n#5\n56789\n##\n", (1,)) == [b"0123456789"]
    for frames, data in (
        (NetconfFrames(limit=10), b"0123456789a" + MARK),
        (NetconfFrames(limit=10), b"x" * 16),
        (chunked(limit=10), b"\n#11\n"),
        (chunked(limit=10), b"\n#6\n012345\n#5\n"),
        (chunked(limit=10), b"\n#4294967295\n"),
    ):
        with pytest.raises(FramingError, match="more than 10 bytes"):
            heard(frames, data, (1,))


@given(HOSTILE, CUTS, st.booleans())
def test_hostile_bytes_give_messages_or_one_kind_of_error_and_keep_little(pieces, cuts, in_chunks):
    frames = chunked(limit=64) if in_chunks else NetconfFrames(limit=64)
    with contextlib.suppress(FramingError):
        for message in heard(frames, b"".join(pieces), cuts):
            assert len(message) <= 64
    assert len(frames._buffer) + len(frames._body) <= 64 + 2 * max(cuts) + 13
