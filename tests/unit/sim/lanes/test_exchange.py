"""Connections through lanes: what flows, what waits, and what each end learns of the other."""

import os
import socket
import struct
from contextlib import suppress

import pytest

RESET = struct.pack("ii", 1, 0)
LARGE = os.urandom(24 * 1024 * 1024)


def test_bytes_flow_both_ways_over_lit_lanes(yard, hops, received):
    yard.exchange.light(hops("ab", "bc", "ca"))
    near, far = yard.joined("a0", "c0")
    near.send(b"there")
    far.send(b"back")
    yard.quiet()
    assert received(far) == b"there"
    assert received(near) == b"back"
    assert yard.exchange.status() == {
        "connections": 1,
        "dark": 0,
        "bytes": 9,
        "lanes": {"a>b": 5, "b>c": 5, "c>a": 4},
    }


def test_light_has_a_direction(yard, hops, received):
    yard.exchange.light(hops("ab"))
    near, far = yard.joined("a0", "b0")
    near.send(b"there")
    far.send(b"back")
    yard.quiet()
    assert received(far) == b"there"
    assert received(near) is None
    assert yard.exchange.status()["dark"] == 1
    yard.exchange.light(hops("ab", "ba"))
    yard.quiet()
    assert received(near) == b"back"


def test_within_a_host_no_light_is_needed(yard, received):
    near, far = yard.joined("d0", "d1")
    near.send(b"there")
    yard.quiet()
    assert received(far) == b"there"


def test_what_light_cuts_off_waits_and_is_whole(yard, hops, received):
    yard.exchange.light(hops("ab", "ba"))
    near, far = yard.joined("a0", "b0")
    left, came = memoryview(LARGE), bytearray()

    def exchange_some() -> None:
        nonlocal left
        with suppress(BlockingIOError):
            left = left[near.send(left[: 1 << 20]) :]
        came.extend(received(far) or b"")

    for limit in (len(LARGE) // 3, 2 * len(LARGE) // 3):
        yard.until(lambda limit=limit: exchange_some() or len(came) > limit)
        yard.exchange.light([])
        yard.quiet()
        # What was beyond the lanes when they went dark has arrived.
        came.extend(received(far) or b"")
        stalled = len(came)
        for _ in range(20):
            exchange_some()
            yard.turn()
        assert len(came) == stalled < len(LARGE)
        yard.exchange.light(hops("ac", "cb", "ba"))
    yard.until(lambda: exchange_some() or len(came) == len(LARGE))
    assert bytes(came) == LARGE


def test_what_one_has_not_taken_yet_is_not_mixed_with_what_another_gets(yard, received):
    connections = [yard.joined("d0", "d1") for _ in range(2)]
    came = [bytearray(), bytearray()]
    left = [memoryview(bytes([1]) * len(LARGE)), memoryview(bytes([2]) * len(LARGE))]
    while any(left):
        for index, (near, _) in enumerate(connections):
            with suppress(BlockingIOError):
                left[index] = left[index][near.send(left[index][: 1 << 20]) :]
        yard.turn()
        for index, (_, far) in enumerate(connections):
            with suppress(BlockingIOError):
                # Less than comes, so that much is left waiting.
                came[index] += far.recv(1 << 18)
    for (_, far), found in zip(connections, came, strict=True):
        yard.until(lambda far=far, found=found: found.extend(received(far) or b"") or len(found) == len(LARGE))
    assert [set(found) for found in came] == [{1}, {2}]


def test_a_close_is_told_only_where_light_leads(yard, hops, received):
    yard.exchange.light(hops("ba"))
    near, far = yard.joined("a0", "b0")
    near.send(b"last words")
    near.close()
    yard.quiet()
    assert received(far) is None
    yard.exchange.light(hops("ab", "ba"))
    yard.quiet()
    assert received(far) == b"last words"
    far.send(b"nobody reads this")
    far.close()
    yard.until(lambda: yard.exchange.status()["connections"] == 0)


def test_a_half_close_leaves_the_other_direction_open(yard, hops, received):
    yard.exchange.light(hops("ab", "ba"))
    near, far = yard.joined("a0", "b0")
    near.send(b"question")
    near.shutdown(socket.SHUT_WR)
    yard.quiet()
    assert received(far) == b"question"
    far.send(b"answer")
    far.close()
    yard.quiet()
    assert received(near) == b"answer"
    assert yard.exchange.status()["connections"] == 0


def test_a_killed_end_is_told_of_at_once_over_lit_lanes(yard, hops):
    yard.exchange.light(hops("ab", "ba"))
    near, far = yard.joined("a0", "b0")
    far.send(b"never read")
    yard.quiet()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    near.close()
    yard.quiet()
    with pytest.raises(ConnectionResetError):
        far.recv(1)


def test_a_killed_end_in_the_dark_is_told_of_with_the_light(yard, hops):
    near, far = yard.joined("a0", "b0")
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    near.close()
    yard.quiet()
    with pytest.raises(BlockingIOError):
        far.recv(1)
    yard.exchange.light(hops("ba"))
    yard.quiet()
    far.send(b"nobody is there to take it")
    yard.quiet()
    with pytest.raises(BlockingIOError):
        far.recv(1)
    yard.exchange.light(hops("ab", "ba"))
    yard.quiet()
    with pytest.raises(ConnectionResetError):
        far.recv(1)


@pytest.mark.parametrize("lit", [(), ("ab",), ("ba",)])
def test_ends_that_have_both_closed_are_let_go_in_the_dark(yard, hops, lit):
    yard.exchange.light(hops(*lit))
    near, far = yard.joined("a0", "b0")
    near.send(b"x")
    far.send(b"y")
    yard.quiet()
    near.close()
    yard.quiet()
    far.close()
    yard.until(lambda: yard.exchange.status()["connections"] == 0)


def test_an_address_that_refuses_closes_the_connection(yard, hops):
    yard.exchange.light(hops("ab", "ba"))
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = gone.getsockname()
    answer = yard.exchange.answer({"from": "a0", "to": "b0", "address": address})
    with socket.create_connection(answer["endpoint"]) as near:
        near.settimeout(0.0)
        yard.quiet()
        with pytest.raises(ConnectionResetError):
            near.recv(1)


def test_an_endpoint_serves_once_and_its_port_is_less_than_others(yard):
    endpoint = yard.endpoint("a0", "b0")
    assert endpoint[1] % 256 == 0
    with socket.create_connection(endpoint):
        yard.until(lambda: yard.exchange.status()["connections"] == 1)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(endpoint)


def test_endpoints_that_nobody_used_are_given_up_in_time(yard):
    given = {yard.endpoint("a0", "b0") for _ in range(124)}
    assert "error" in yard.exchange.answer({"from": "a0", "to": "b0", "address": ["127.0.0.1", 9]})
    yard.time += 61.0
    assert yard.endpoint("a0", "b0") in given


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"from": "a0", "to": "nobody", "address": ["127.0.0.1", 9]},
        {"from": "a0", "to": "b0", "address": ["192.0.2.1", 9]},
        {"from": "a0", "to": "b0", "address": ["127.0.0.1", 0]},
        {"from": "a0", "to": "b0", "address": ["localhost", 9]},
        {"from": "a0", "to": "b0", "address": 9},
    ],
)
def test_a_bad_request_is_answered_with_an_error(yard, request_):
    answer = yard.exchange.answer(request_)
    assert answer["error"]
    assert yard.exchange.status()["connections"] == 0


def test_those_who_share_a_lane_share_its_rate(make_yard, hops, received):
    yard = make_yard(rate=1e6)
    yard.exchange.light(hops("ab", "bc"))
    alone = yard.joined("a0", "b0")
    assert carried(yard, received, [alone]) == [pytest.approx(2e6, rel=0.03)]
    yard.exchange.light(hops("ab", "bc", "ac"))
    apart = [alone, yard.joined("a0", "c0")]
    assert carried(yard, received, apart) == [pytest.approx(2e6, rel=0.03)] * 2
    yard.exchange.light(hops("ab", "bc"))
    assert carried(yard, received, apart) == [pytest.approx(1e6, rel=0.03)] * 2, "both go over a>b now"


def test_connections_of_two_accelerators_take_all_their_lanes_whatever_else_passes_there(yard, hops):
    yard.exchange.light(hops("ab", "ba", "ab2", "ba2", "bc", "cb"))
    yard.joined("a0", "b0")[0].send(b"1")
    # This one takes the second lane from a to b; after it, both lanes carry as many connections.
    yard.joined("a0", "c0")[0].send(b"22")
    yard.joined("a0", "b0")[0].send(b"333")
    yard.quiet()
    carried = yard.exchange.status()["lanes"]
    assert sorted((carried["a>b"], carried["a2>b2"])) == [1, 5]
    yard.exchange.light(hops("ab", "ba", "ab2", "ba2", "bc", "cb"))
    yard.joined("a0", "b0")[0].send(b"4444")
    yard.quiet()
    assert sum(yard.exchange.status()["lanes"].values()) == 1 + 2 + 2 + 3 + 4


def test_timers_that_are_late_take_nothing_from_the_rate(make_yard, hops, received):
    yard = make_yard(rate=1e6)
    yard.exchange.light(hops("ab", "bc"))
    alone = yard.joined("a0", "b0")
    assert carried(yard, received, [alone], turn_s=0.023) == [pytest.approx(2e6, rel=0.03)]


def carried(yard, received, connections, *, turn_s: float = 0.001) -> list[int]:
    """Bytes that each of these carries in two seconds, with more to send at any time."""
    counts = [0] * len(connections)
    until = yard.time + 2.0
    while yard.time < until:
        for index, (near, far) in enumerate(connections):
            with suppress(BlockingIOError):
                while True:
                    near.send(LARGE[: 1 << 18])
            counts[index] += len(received(far) or b"")
        for _ in range(4):
            yard.turn()
        yard.time += turn_s
    return counts
