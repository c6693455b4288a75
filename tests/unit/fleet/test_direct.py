"""What tools print straight into a channel, in any pieces."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.fleet import conversation
from lumctl.fleet.conversation import DirectCommand
from lumctl.fleet.frames import Frame, FrameMark, NonsenseError
from lumctl.fleet.loop import MOST_BYTES

TOKEN = "0123456789abcdef"  # noqa: S105 - it is no secret here
OTHER = "fedcba9876543210"
LINES = [f"\n{token} 1 2 0\n".encode() for token in (OTHER, TOKEN[:-1], f"x{TOKEN}", TOKEN.upper())]
LINES += [f"\n{TOKEN}".encode(), f"{TOKEN} 1 2 0\n".encode(), b"\n", b"\0", b"\n\0\n", b""]

numbers = st.integers(0, 10**15 - 1) | st.integers(0, 9)
printed = st.lists(st.binary(max_size=50) | st.sampled_from(LINES[:4] + LINES[6:]), max_size=8).map(b"".join)
answers = st.tuples(numbers, numbers, st.integers(0, 255), printed)
cuts = st.lists(st.integers(0, 2000), max_size=30)


def direct_of(token=TOKEN):
    reader = DirectCommand()
    reader.token, reader._end = token, f"\n{token} ".encode()
    return reader


def stream_of(*said):
    return b"".join(text + f"\n{TOKEN} {probe} {request} {status}\n".encode() for probe, request, status, text in said)


def as_a_shell_has_it(text):
    """What ``$(...)`` makes of an output."""
    return text.replace(b"\0", b"").rstrip(b"\n")


def fed(stream, at, *, last, reader=None):
    """What a reader makes of a stream in pieces; ``last`` is told as soon as one answer is missing."""
    reader = reader or direct_of()
    missing = stream.count(f"\n{TOKEN} ".encode())
    found = []
    for begin, end in itertools.pairwise([0, *sorted(cut % (len(stream) + 1) for cut in at), len(stream)]):
        found.extend(reader.feed(stream[begin:end], last=last and missing - len(found) == 1))
    return found


@given(st.lists(answers, max_size=5), cuts, st.booleans())
def test_any_pieces_give_the_same_answers(said, at, last):
    wanted = [
        Frame(FrameMark.WHOLE, probe, request, status, as_a_shell_has_it(text)) for probe, request, status, text in said
    ]
    reader = direct_of()
    assert fed(stream_of(*said), at, last=last, reader=reader) == wanted
    assert not reader.drop()


@given(answers, st.integers(1, 60))
def test_what_is_not_complete_is_not_given(answer, missing):
    stream = stream_of(answer)
    for last in (True, False):
        reader = direct_of()
        assert list(reader.feed(stream[:-missing], last=last)) == []
        assert len(list(reader.feed(stream[-missing:], last=last))) == 1


@given(answers)
def test_byte_by_byte(answer):
    stream = stream_of(answer)
    assert fed(stream, range(len(stream)), last=True) == fed(stream, (), last=False)


@pytest.mark.parametrize("line", LINES[:4])
def test_what_only_looks_like_an_end_is_in_the_answer(line):
    (frame,) = fed(stream_of((3, 4, 0, b"before" + line + b"behind")), range(200), last=True)
    assert frame == Frame(FrameMark.WHOLE, 3, 4, 0, b"before" + line + b"behind")


def test_each_channel_has_a_token_of_its_own():
    tokens = {DirectCommand().token for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) >= 16 and token.isalnum() and token.isascii() for token in tokens)


@pytest.mark.parametrize("text", [b"a\n\0\n", b"\0", b"\n\n\0\n\n", b"a\0b\n\n", b"\na\n\n", b"\0" * 100 + b"a"])
def test_nul_and_the_ends_of_the_last_lines(text):
    assert [frame.body for frame in fed(stream_of((1, 1, 0, text)), (), last=True)] == [as_a_shell_has_it(text)]


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("stray", [b"x", b"\n", b"x" * 1000])
def test_what_stands_behind_an_end_is_told_and_dropped(last, stray):
    reader = direct_of()
    assert [frame.body for frame in reader.feed(stream_of((1, 1, 0, b"one")) + stray, last=last)] == [b"one"]
    assert reader.drop()
    assert not reader.drop()
    assert [frame.body for frame in reader.feed(stream_of((1, 2, 0, b"two")), last=last)] == [b"two"]


def test_who_takes_an_answer_may_drop_what_stands_behind_it():
    reader = direct_of()
    for _ in reader.feed(stream_of((1, 1, 0, b"one"), (1, 2, 0, b"nobody's")), last=False):
        assert reader.drop()
    assert list(reader.feed(b"", last=True)) == []


@pytest.mark.parametrize("over", [0, 1])
def test_an_answer_of_more_than_a_shell_would_keep_fails(over):
    stream = stream_of((1, 1, 0, b"\0" + b"x" * (MOST_BYTES + over) + b"\n\n"), (1, 2, 0, b"well"))
    large, well = fed(stream, range(0, len(stream), 2**20), last=True)
    if over:
        assert large == Frame(FrameMark.WHOLE, 1, 1, 1, b"it printed more than 8388608 bytes")
    else:
        assert (large.status, len(large.body)) == (0, MOST_BYTES)
    assert well == Frame(FrameMark.WHOLE, 1, 2, 0, b"well")


def test_an_answer_without_an_end(monkeypatch):
    monkeypatch.setattr(conversation, "MAX_ANSWER_BYTES", 2**20)
    reader = direct_of()
    for _ in range(2**6):
        assert list(reader.feed(b"x" * 2**14, last=True)) == []
    with pytest.raises(NonsenseError, match="an answer of more than 1 MiB"):
        list(reader.feed(b"x", last=True))


@pytest.mark.parametrize(
    "line", [b"", b"1 2", b"1 2 3 4", b"1 2 -3", b"01 2 3", b"1 2 3 ", b"1 2 1000", b"1  2 3", b"a b c"]
)
def test_what_no_loop_says_for_an_end(line):
    with pytest.raises(NonsenseError, match="expected the end of an answer, found: b'0123456789abcdef "):
        list(direct_of().feed(b"body\n%s %s\n" % (TOKEN.encode(), line), last=True))


def test_an_end_that_never_ends_is_bounded(monkeypatch):
    monkeypatch.setattr(conversation, "MAX_ANSWER_BYTES", 2**16)
    reader = direct_of()
    assert list(reader.feed(b"body\n%s " % TOKEN.encode(), last=True)) == []
    with pytest.raises(NonsenseError, match="an answer of more than"):
        list(reader.feed(b"1" * 2**16, last=True))
