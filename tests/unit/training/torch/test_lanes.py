"""A store that leads gloo's connections over lanes: whose address becomes what, and what it refuses."""

import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from torch.distributed import HashStore

from lumctl.errors import RefusedError, UnreachableError
from lumctl.training.torch.stores import LaneStore

PLACEMENT = ["a0", "b0", "c0"]
KEY = "0//cpu//0/{}"


def blob(port: int, *, ip: str = "127.0.0.1", family: int = 2, host: bytes = b"vm") -> bytes:
    address = struct.pack("<H", family) + port.to_bytes(2) + socket.inet_aton(ip)
    return struct.pack("<Q", len(host)) + host + struct.pack("<Q", 136) + address.ljust(136, b"\0") + bytes(16)


def address(found: bytes) -> tuple[str, int]:
    return socket.inet_ntoa(found[22:26]), int.from_bytes(found[20:22])


@pytest.fixture
def lanes(tmp_path: Path) -> Iterator["Lanes"]:
    with Lanes(tmp_path / "lanes.sock") as made:
        yield made


class Lanes:
    """Gives out one endpoint, as the simulator does, and notes who asked for which."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: list[dict] = []
        self.answer: dict = {"endpoint": ["127.0.0.1", 2048]}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection, connection.makefile("rwb") as lines:
                for line in lines:
                    if line == b"end\n":
                        return
                    self.asked.append(json.loads(line))
                    lines.write(json.dumps(self.answer).encode() + b"\n")
                    lines.flush()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with socket.socket(socket.AF_UNIX) as ending:
            ending.connect(str(self.path))
            ending.sendall(b"end\n")
            self._thread.join()
        self._listener.close()


def stores(path: Path) -> list[LaneStore]:
    shared = HashStore()
    made = [LaneStore(shared, rank=rank, placement=PLACEMENT, lanes=path) for rank in range(3)]
    for rank, store in enumerate(made):
        store.set(KEY.format(rank), blob(40000 + rank))
    return made


def test_the_greater_rank_is_led_to_an_endpoint_and_the_other_waits_for_it(lanes):
    _, middle, _ = made = stores(lanes.path)
    assert middle.get(KEY.format(1)) == blob(40001), "the own address stays"
    assert address(middle.get(KEY.format(0))) == ("127.0.0.1", 2048)
    assert address(middle.get(KEY.format(2))) == ("127.0.0.1", 65535)
    assert lanes.asked == [{"from": "b0", "to": "a0", "address": ["127.0.0.1", 40000]}]
    assert middle.joined == 2
    for store in made:
        store.close()


def test_only_the_port_changes(lanes):
    _, middle, _ = stores(lanes.path)
    assert middle.get(KEY.format(0)) == blob(2048)
    middle.close()


def test_ranks_of_a_part_are_told_apart_by_who_they_are(lanes):
    """In a part made of ranks 0 and 2, rank 2 is number 1."""
    first, _, last = stores(lanes.path)
    first.set("0//1//cpu//0/0", blob(41000))
    last.set("0//1//cpu//0/1", blob(41002))
    assert address(first.get("0//1//cpu//0/1")) == ("127.0.0.1", 65535)
    last.get("0//1//cpu//0/0")
    assert lanes.asked == [{"from": "c0", "to": "a0", "address": ["127.0.0.1", 41000]}]
    last.close()


def test_other_keys_are_not_touched(lanes):
    shared = HashStore()
    store = LaneStore(shared, rank=0, placement=PLACEMENT, lanes=lanes.path)
    store.set("step", b"7")
    assert shared.get("step") == store.get("step") == b"7"
    assert store.add("count", 2) == 2
    assert store.check(["step"])
    store.wait(["step"])
    assert store.delete_key("step")
    assert not store.check(["step"])
    with pytest.raises(RefusedError, match="no peer's address"):
        store.require_joined()


def test_a_group_of_one_needs_no_lanes(tmp_path):
    LaneStore(HashStore(), rank=0, placement=["a0"], lanes=tmp_path / "none").require_joined()


@pytest.mark.parametrize(
    "strange", [b"", b"\x02", blob(40000, family=10), struct.pack("<Q", 1 << 63) + bytes(200), bytes(160)]
)
def test_an_address_of_another_form_is_refused(lanes, strange):
    store = LaneStore(HashStore(), rank=0, placement=PLACEMENT, lanes=lanes.path)
    with pytest.raises(RefusedError, match="a form that lanes do not support"):
        store.set(KEY.format(0), strange)


def test_a_peer_without_lanes_is_refused(lanes):
    shared = HashStore()
    store = LaneStore(shared, rank=1, placement=PLACEMENT, lanes=lanes.path)
    store.set(KEY.format(1), blob(40001))
    shared.set(KEY.format(0), blob(40000).decode("latin-1"))
    with pytest.raises(RefusedError, match="does not go over lanes"):
        store.get(KEY.format(0))


def test_an_own_address_less_than_an_endpoint_is_refused(lanes):
    shared = HashStore()
    stores = [LaneStore(shared, rank=rank, placement=PLACEMENT, lanes=lanes.path) for rank in range(2)]
    for store, ip in zip(stores, ("127.0.0.1", "10.0.0.7"), strict=True):
        store.set(KEY.format(stores.index(store)), blob(40000, ip=ip))
    with pytest.raises(RefusedError, match="no endpoint of a lane can reach"):
        stores[1].get(KEY.format(0))
    stores[1].close()


def test_what_the_simulator_refuses_is_said(lanes):
    lanes.answer = {"error": "all endpoints await somebody", "hint": "ask again"}
    _, middle, _ = stores(lanes.path)
    with pytest.raises(RefusedError, match="all endpoints await somebody"):
        middle.get(KEY.format(0))
    middle.close()


def test_no_simulator(tmp_path):
    _, middle, _ = stores(tmp_path / "lanes.sock")
    with pytest.raises(UnreachableError, match="provides no endpoint"):
        middle.get(KEY.format(0))


def test_in_a_job_with_phases_only_groups_that_need_light_are_led_over_lanes(lanes):
    shared = HashStore()
    first, last = (LaneStore(shared, rank=rank, placement=PLACEMENT, lanes=lanes.path, phased=True) for rank in (0, 2))
    for key in (KEY, "0//1//cpu//lanes//0/{}"):
        first.set(key.format(0), blob(41000))
        last.set(key.format(1), blob(41002))
    assert last.get(KEY.format(0)) == blob(41000), "over the network between hosts"
    assert not lanes.asked
    with pytest.raises(RefusedError, match="no peer's address"):
        last.require_joined()
    assert address(last.get("0//1//cpu//lanes//0/0")) == ("127.0.0.1", 2048)
    assert lanes.asked == [{"from": "c0", "to": "a0", "address": ["127.0.0.1", 41000]}]
    last.require_joined()
    last.close()
