"""What a loop prints, in any pieces; and what no loop prints."""

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lumctl.fleet import frames
from lumctl.fleet.frames import MAX_ANSWER_BYTES, Frame, FrameMark, Frames, Greeting, NonsenseError

GREETING = b"lumctl-loop 2 0d5e7fb1-7a7e-4d43-9e0f-4f4f0b1a2c3d 100.25\n"
GREETED = Greeting("0d5e7fb1-7a7e-4d43-9e0f-4f4f0b1a2c3d", 100.25)

numbers = st.integers(0, 10**15 - 1) | st.integers(0, 9)
bodies = st.binary(max_size=200) | st.sampled_from([b"", b"\n", b"= 0 1 0 5\nhello\n", GREETING])
answers = st.builds(
    Frame, st.sampled_from([FrameMark.WHOLE, FrameMark.MORE]), numbers, numbers, numbers, bodies
) | st.builds(Frame, st.sampled_from([FrameMark.SAME, FrameMark.LOST]), numbers, numbers, numbers, st.just(b""))
cuts = st.lists(st.integers(0, 2000), max_size=30)
login_lines = st.lists(
    st.binary(max_size=80).map(lambda line: line.replace(b"\n", b"")).filter(lambda x: not x.startswith(b"lumctl"))
)


def printed(frame: Frame) -> bytes:
    head = f"{frame.mark} {frame.probe} {frame.request} {frame.status}"
    if frame.mark in {FrameMark.SAME, FrameMark.LOST}:
        return f"{head}\n".encode()
    return f"{head} {len(frame.body)}\n".encode() + frame.body + b"\n"


def fed(stream: bytes, at, reader: Frames | None = None):
    """What a reader makes of a stream in pieces, and whether it gave up."""
    reader = reader or Frames()
    ends = [0, *sorted(cut % (len(stream) + 1) for cut in at), len(stream)]
    said: list[Greeting | Frame] = []
    try:
        for begin, end in itertools.pairwise(ends):
            said.extend(reader.feed(stream[begin:end]))
    except NonsenseError:
        return said, True
    return said, False


def greeted() -> Frames:
    reader = Frames()
    assert list(reader.feed(GREETING)) == [GREETED]
    return reader


@given(login_lines, st.lists(answers, max_size=8), cuts)
def test_any_pieces_give_the_same_frames(noise, sent, at):
    stream = b"".join(line + b"\n" for line in noise) + GREETING + b"".join(map(printed, sent))
    assert fed(stream, at) == ([GREETED, *sent], False)


@given(st.lists(answers, min_size=1, max_size=4), cuts, st.data())
def test_what_is_not_complete_is_not_given(sent, at, data):
    stream = b"".join(map(printed, sent))
    whole = stream[: -data.draw(st.integers(1, len(printed(sent[-1]))))]
    reader = greeted()
    assert fed(whole, at, reader) == (sent[:-1], False)
    assert fed(stream[len(whole) :], at, reader) == (sent[-1:], False)


@settings(max_examples=300)
@given(
    st.lists(answers, max_size=3).map(lambda sent: b"".join(map(printed, sent))),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from(b"=+~!  \n\n0019_-x\r\0\xff"))),
    cuts,
)
@example(b"", [(0, 0, n) for n in reversed(b"= 0 1 0 1_0\n0123456789\n")], [])
@example(b"", [(0, 0, n) for n in reversed(b"= 0 1 0 +2\nhi\n")], [])
@example(b"", [(0, 0, n) for n in reversed(b"~ 00 1 0\n")], [])
def test_only_the_protocol_is_accepted(stream, changes, at):
    """What is accepted is what a loop would have printed for it, to the byte, and in pieces it is the same."""
    damaged = bytearray(stream)
    for place, removed, put in changes:
        begin = place % (len(damaged) + 1)
        damaged[begin : begin + removed] = bytes([put])
    said, gave_up = fed(bytes(damaged), at, greeted())
    accepted = b"".join(map(printed, said))
    assert damaged.startswith(accepted)
    assert (said, gave_up) == fed(bytes(damaged), (), greeted())
    rest = bytes(damaged[len(accepted) :])
    # What it continues waiting for can still become an answer: a line that has not ended, or a body that has not.
    assert gave_up or b"\n" not in rest or len(rest) < len(rest.partition(b"\n")[0]) + 2 + int(rest.split()[4])


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"what?",
        b"=",
        b"= 1 2 3",
        b"~ 1 2 3 4",
        b"! 1 2 3 4",
        b"= 1 2 3 4 5",
        b"= 1 2 3 -4",
        b"= 1  2 3 4",
        b" = 1 2 3 4",
        b"= 1 2 3 4 ",
        b"= 1 2 3 4\r",
        b"? 1 2 3 4",
        b"== 1 2 3 4",
        b"= 1 2 3 0x4",
        b"= 1 2 3 " + b"9" * 5000,
        GREETING.strip(),
    ],
)
def test_no_answer(line):
    with pytest.raises(NonsenseError, match="expected an answer, found: b'"):
        list(greeted().feed(line + b"\n"))


def test_an_answer_longer_than_it_says():
    with pytest.raises(NonsenseError, match="that exceeds its stated length: b'= 1 2 0 3'"):
        list(greeted().feed(b"= 1 2 0 3\nabcd\n"))


def test_it_is_told_by_its_length_alone_that_an_answer_is_too_long():
    reader = greeted()
    assert list(reader.feed(b"= 1 2 0 %d\n" % MAX_ANSWER_BYTES)) == []
    with pytest.raises(NonsenseError, match="more than 32 MiB"):
        list(greeted().feed(b"= 1 2 0 %d\n" % (MAX_ANSWER_BYTES + 1)))


@pytest.mark.parametrize("reader", [Frames(), greeted()], ids=["before", "after"])
def test_a_line_without_an_end(reader):
    for _ in range(65):
        assert list(reader.feed(b"x" * 1000)) == []
    with pytest.raises(NonsenseError, match="a line without an end"):
        list(reader.feed(b"x" * 1000))


@pytest.mark.parametrize("line", [b"0123456789\n", b"\n"])
def test_a_login_script_without_an_end(monkeypatch, line):
    monkeypatch.setattr(frames, "_MAX_PREAMBLE_BYTES", 5500)
    most = 5500 // len(line)
    reader, endless = Frames(), Frames()
    assert list(reader.feed(most * line)) == []
    assert list(reader.feed(GREETING)) == [GREETED]
    with pytest.raises(NonsenseError, match="much output, but no greeting"):
        list(endless.feed((most + 1) * line))


def test_nonsense_stays_nonsense():
    reader = greeted()
    for data in (b"what?\n", b"~ 1 2 0\n", b""):
        with pytest.raises(NonsenseError):
            list(reader.feed(data))


@pytest.mark.parametrize(
    ("line", "greeting"),
    [
        (b"lumctl-loop 2 - -", Greeting(None, None)),
        (b"lumctl-loop 2 ", Greeting(None, None)),
        (b"lumctl-loop 2 abc 12", Greeting("abc", 12.0)),
        (b"lumctl-loop 2 abc nan", Greeting("abc", None)),
        (b"lumctl-loop 2 abc inf", Greeting("abc", None)),
        (b"lumctl-loop 2 abc -5", Greeting("abc", None)),
        (b"lumctl-loop 2 \xff 1e400 more", Greeting("�", None)),
    ],
)
def test_greetings(line, greeting):
    assert list(Frames().feed(line + b"\n")) == [greeting]


def test_a_greeting_of_another_protocol_is_none():
    assert list(Frames().feed(b"lumctl-loop 1 abc 12\nlumctl-loop 20 abc 12\nlumctl-loop 2\n")) == []


def test_what_stands_in_place_of_a_greeting_is_kept():
    reader = Frames()
    assert reader.preamble == b""
    assert fed(b"\nsh: 1: no\nnor", range(14), reader) == ([], False)
    assert reader.preamble == b"\nsh: 1: no\nnor"
    assert fed(b" that\n" + GREETING, (), reader) == ([GREETED], False)
    assert reader.preamble == b""
    assert fed(b"= 1 ", (), reader) == ([], False)
    assert reader.preamble == b""


def test_of_much_in_place_of_a_greeting_the_beginning_is_kept():
    reader = Frames()
    assert fed(b"first\n" + b"x" * 20_000 + b"\n" + b"more\n" * 9_000, range(0, 60_000, 1000), reader) == ([], False)
    assert reader.preamble.startswith(b"first\nxxx")
    assert len(reader.preamble) < 4096
