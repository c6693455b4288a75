"""A host that hangs, or answers badly, after the loop's greeting."""

import time

import pytest

from lumctl.fleet.readings import ProbeStatus

OK, ABSENT, FAILED, TIMED_OUT = ProbeStatus.OK, ProbeStatus.ABSENT, ProbeStatus.FAILED, ProbeStatus.TIMED_OUT
HALF = b"= 3 %d 0 72\n/sys/class/net/lo/operstate:unknown\n"
REST = b"/sys/class/net/eno1/operstate:up\n\n\n\n\n"
NONSENSE = {
    b"what?\n": "expected an answer, found: b'what?'",
    b"= 3 1 0 x\n": "expected an answer, found: b'= 3 1 0 x'",
    b"= 3 1 0 1_0\n0123456789\n": "expected an answer, found: b'= 3 1 0 1_0'",
    b"~ 3 1 0 5\n12345\n": "expected an answer, found: b'~ 3 1 0 5'",
    b"= 3 1 0 -5\n": "expected an answer, found: b'= 3 1 0 -5'",
    b"= 3 1 0 3\nmore than three\n": "an answer that exceeds its stated length: b'= 3 1 0 3'",
    b"= 3 1 0 999999999\n": "an answer of more than 32 MiB",
    b"0123456789" * 7000: "a line without an end",
}


def says(data):
    """A host that answers this to whatever comes first, and does not hang up."""

    def script(loop):
        loop.begin()
        next(loop.asked())
        loop.say(data)
        loop.twin.let_go.wait(20)

    return script


def first_answers_then(rest):
    """A host that is well once, and then does something else with each request."""

    def script(loop):
        loop.begin()
        asked = loop.asked()
        loop.answer(*next(asked))
        for each in asked:
            rest(loop, *each)

    return script


def is_well_again(twin, read, connects=1):
    twin.heal()
    host, outcome = read()
    assert (host.reachable, host.error, outcome and outcome.status) == (True, None, OK)
    return len(twin.connects) == connects


def test_no_second_copy_behind_a_tool_that_hangs(fleet, twin, until):
    held = []

    def hang(loop):
        loop.begin()
        for name, *numbers in loop.asked():
            if name in {"gpu", "nvlink"} and not twin.let_go.is_set():
                held.append((loop, name, *numbers))
            else:
                loop.answer(name, *numbers)

    def read(*probes):
        return fleet.collect(probes=probes or None).hosts[twin.name].probes

    twin.script = hang
    first = read()
    assert first["gpu"].detail == "no answer within 0.4 s"
    assert first["nvlink"].detail == "waits behind gpu, which hangs"
    assert (first["net"].status, first["kernel"].status) == (OK, OK)
    for _ in range(3):
        again = read()
        assert (again["gpu"].status, again["nvlink"].status) == (TIMED_OUT, TIMED_OUT)
        assert again["gpu"].detail.startswith("still hanging since 20")
        assert again["net"].status is OK
    assert [twin.asked.count(name) for name in ("gpu", "nvlink", "net")] == [1, 1, 4]
    # It ends on the host, and only then is it asked again.
    twin.let_go.set()
    for loop, *asked in held:
        loop.answer(*asked)
    assert until(lambda: read("gpu")["gpu"].status is ABSENT)
    assert twin.asked.count("nvlink") == 1
    assert twin.asked.count("gpu") <= 2, "its late answer counts, or it is asked once more"
    assert twin.commands == ["exec sh"]


def test_it_stops_in_the_middle_of_an_answer(twin, read, until):
    let_go, stopped = twin.let_go, []

    def stop(loop, name, request, number):
        if stopped:
            loop.answer(name, request, number)
            return
        stopped.append(name)
        loop.say(HALF % request)
        let_go.wait(20)
        loop.say(REST)

    twin.script = first_answers_then(stop)
    assert read()[1].status is OK
    started = time.monotonic()
    host, outcome = read()
    assert time.monotonic() - started < 2.0
    assert (host.reachable, outcome.status, outcome.detail) == (True, TIMED_OUT, "no answer within 0.4 s")
    assert host.interfaces == {}
    assert read()[1].detail.startswith("still hanging since 20")
    assert twin.asked == ["net", "net"]
    let_go.set()
    assert until(lambda: read()[1].status is OK)
    assert len(twin.asked) <= 3, "its late answer counts, or it is asked once more"
    assert len(twin.channels) == 1


def test_an_answer_that_comes_byte_by_byte(twin, read):
    def drip(loop, _name, request, _number):
        for byte in HALF % request + REST:
            loop.say(bytes([byte]))

    twin.script = first_answers_then(drip)
    assert read()[1].status is OK
    host, outcome = read()
    assert outcome.status is OK
    assert host.interfaces["eno1"].operstate == "up"


@pytest.mark.parametrize("data", NONSENSE, ids=list(map(str, range(len(NONSENSE)))))
def test_nonsense_ends_the_loop_and_not_the_connection(twin, read, data):
    twin.script = says(data)
    started = time.monotonic()
    host, outcome = read()
    assert time.monotonic() - started < 2.0
    assert (host.reachable, outcome) == (False, None)
    assert host.error == f"h0: its shell sent an answer without a request: {NONSENSE[data]}"
    assert is_well_again(twin, read)


def test_answers_that_nobody_asked_for_change_nothing(twin, read):
    def talk(loop):
        loop.begin()
        for name, request, number in loop.asked():
            loop.say(b"~ 3 999 0\n= 77 1 0 2\nhi\n! 0 0 137\n! 99 0 137\n+ 2 1 0 2\nhi\n")
            loop.answer(name, request, number)
            loop.answer(name, request, number)

    twin.script = talk
    for _ in range(3):
        host, outcome = read()
        assert (host.error, outcome.status, host.interfaces["eno1"].operstate) == (None, OK, "up")


LAST_WORDS = "its shell sent an answer without a request: expected an answer, found: b'Killed'"


@pytest.mark.parametrize("end", ["status", "close", "end-of-file"])
def test_the_loop_ends(twin, read, end):
    def leave(loop, *_):
        if end == "status":
            loop.channel.sendall_stderr(b"Killed\n")
            loop.channel.send_exit_status(137)
        if end == "end-of-file":
            loop.channel.shutdown_write()
            loop.twin.let_go.wait(20)
        loop.channel.close()

    twin.script = first_answers_then(leave)
    assert read()[1].status is OK
    host, outcome = read()
    assert (host.reachable, outcome) == (False, None)
    assert host.error == f"h0: {LAST_WORDS if end == 'status' else 'its shell ended'}"
    assert is_well_again(twin, read)


def test_the_connection_is_lost_in_the_middle_of_an_answer(twin, read):
    def cut(loop, _name, request, _number):
        loop.say(HALF % request)
        twin.cut()

    twin.script = first_answers_then(cut)
    assert read()[1].status is OK
    host, outcome = read()
    assert (host.reachable, host.error, outcome) == (False, "h0: the connection was lost", None)
    assert host.interfaces == {}
    assert is_well_again(twin, read, connects=2)


def test_the_connection_is_lost_between_two_reads(twin, read, until):
    assert read()[1].status is OK
    twin.cut()
    # Either it is known by now, or the request finds out.
    assert until(lambda: read()[1] is not None)
    assert is_well_again(twin, read, connects=2)


def test_new_keys_in_the_middle_of_an_answer(twin, read):
    def rekey(loop, _name, request, _number):
        loop.say(HALF % request)
        loop.channel.get_transport().renegotiate_keys()
        loop.say(REST)

    twin.script = first_answers_then(rekey)
    for _ in range(4):
        host, outcome = read()
        assert (host.error, outcome.status) == (None, OK)
        assert host.interfaces["eno1"].operstate == "up"
    assert (len(twin.connects), len(twin.channels)) == (1, 1)


def test_new_keys_that_are_never_agreed_on(twin, read, until):
    def rekey(loop, _name, request, _number):
        loop.say(HALF % request)
        twin.begin_new_keys()

    twin.script = first_answers_then(rekey)
    assert read()[1].status is OK
    for probe in ("net", "gpu", "kernel"):
        # What is asked from now on cannot be sent, and its time runs all the same.
        started = time.monotonic()
        host, outcome = read(probe)
        assert time.monotonic() - started < 2.0
        assert (host.reachable, outcome.status, outcome.detail) == (True, TIMED_OUT, "no answer within 0.4 s")
    twin.heal()
    twin.cut()
    assert until(lambda: (outcome := read()[1]) is not None and outcome.status is OK)
    assert len(twin.connects) == 2


def test_a_lane_is_lost_and_goes_on(fleet, twin):
    lost = []

    def lose(loop):
        loop.begin()
        for name, *numbers in loop.asked():
            if name == "gpu" and not lost:
                lost.append(name)
                loop.say(b"! 0 0 137\n")
            else:
                loop.answer(name, *numbers)

    twin.script = lose
    first = fleet.collect().hosts[twin.name]
    assert (first.reachable, first.probes["gpu"].status) == (True, FAILED)
    assert first.probes["gpu"].detail == "it printed more than the host's shell can store (status 137)"
    assert [first.probes[name].status for name in ("nvlink", "kernel", "net")] == [ABSENT, OK, OK]
    assert fleet.collect().hosts[twin.name].probes["gpu"].status is ABSENT
    assert twin.commands == ["exec sh"]
