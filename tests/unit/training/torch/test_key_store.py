"""The store of a group: what PyTorch's own store answers, for workers that know the token, and with waits that end."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.training.torch.key_store import RemoteStore, StoreServer
from lumctl.training.torch.state_transfer import proved
from lumctl.training.torch.stores import GivenUpError

TOKEN = "correct horse"  # noqa: S105 - this test's
KEYS = st.sampled_from(["a", "b", "a/b", "é"])
VALUES = st.binary(max_size=40)
REQUESTS = st.one_of(
    st.tuples(st.just("set"), KEYS, VALUES),
    st.tuples(st.just("get"), KEYS),
    st.tuples(st.just("check"), st.lists(KEYS, min_size=1, max_size=3)),
    st.tuples(st.just("add"), st.just("count"), st.integers(-(2**40), 2**40)),
    st.tuples(st.just("delete_key"), KEYS),
    st.tuples(st.just("append"), KEYS, VALUES),
    st.tuples(st.just("compare_set"), KEYS, st.sampled_from(["", "x", "y"]), st.sampled_from(["x", "y"])),
)


@pytest.fixture
def server():
    with closing(StoreServer("127.0.0.1", TOKEN)) as server:
        yield server


@pytest.fixture
def store(server):
    with closing(RemoteStore(server.address, 1, TOKEN)) as store:
        yield store


def in_thread(call, *what):
    return ThreadPoolExecutor(1).submit(call, *what)


@settings(max_examples=100, deadline=None)
@given(requests=st.lists(REQUESTS, max_size=20))
def test_it_answers_as_the_store_of_pytorch(requests):
    with closing(StoreServer("127.0.0.1", TOKEN)) as server, closing(RemoteStore(server.address, 1, TOKEN)) as ours:
        theirs = dist.HashStore()
        for word, *what in requests:
            if word == "get" and not theirs.check([what[0]]):
                assert not ours.check([what[0]])
                continue
            assert plain(getattr(ours, word)(*what)) == plain(getattr(theirs, word)(*what)), (word, what)
        assert ours.num_keys() == theirs.num_keys() == len(ours.list_keys())


def plain(answer):
    return bytes(answer) if isinstance(answer, bytes | bytearray) else answer


def test_a_key_is_waited_for(server, store):
    with closing(RemoteStore(server.address, 1, TOKEN)) as other:
        waiting = in_thread(other.multi_get, ["a", "b"])
        store.set("b", b"\x00\xff")
        assert not waiting.done()
        store.set("a", "text")
        assert waiting.result(10) == [b"text", b"\x00\xff"]


def test_a_wait_delays_no_other_request_of_the_store(store):
    waiting = in_thread(store.get, "late")
    assert store.add("count", 2) == 2
    store.set("late", b"now")
    assert waiting.result(10) == b"now"


def test_a_time_out_names_the_key_and_the_store_still_works(store):
    with pytest.raises(dist.DistStoreError, match=r"no rank has set late within 0\.05 s"):
        store.wait(["late"], timedelta(seconds=0.05))
    store.set_timeout(timedelta(seconds=0.05))
    with pytest.raises(dist.DistStoreError, match="late"):
        store.get("late")
    store.set("late", b"now")
    assert store.get("late") == b"now"


def test_a_cancel_ends_the_wait_and_all_later_requests(store):
    waiting = in_thread(store.get, "never")
    store.check(["never"])
    store.cancel()
    with pytest.raises(GivenUpError):
        waiting.result(10)
    with pytest.raises(GivenUpError):
        store.set("a", b"")


def test_a_generation_does_not_see_the_keys_of_an_earlier_one(server, store):
    store.set("a", b"1")
    with closing(RemoteStore(server.address, 2, TOKEN)) as later:
        assert not later.check(["a"])
        later.set("a", b"2")
        assert later.get("a") == b"2"
        with closing(later.clone()) as again:
            assert again.get("a") == b"2"


def test_a_stranger_is_refused(server):
    with (
        closing(RemoteStore(server.address, 1, "another")) as stranger,
        pytest.raises(dist.DistNetworkError, match="the token does not belong to this job"),
    ):
        stranger.check(["a"])


@pytest.mark.parametrize(
    "said",
    [
        b"\n",
        b"[]\n",
        b"{}\n",
        b'{"do": "set"}\n',
        b"\xff\n",
        b"[" * 4000 + b"\n",
        b"x" * 5000,
        b'{"proof": "\xc3\xa9"}\n',
    ],
)
def test_what_is_not_a_worker_is_disconnected_and_harms_nothing(server, store, said):
    with socket.create_connection(server.address, timeout=10) as stranger:
        stranger.sendall(said)
        while stranger.recv(4096):
            pass
    store.set("a", b"1")
    assert store.get("a") == b"1"


def test_an_invalid_request_of_a_worker_ends_its_connection_only(server, store):
    with socket.create_connection(server.address, timeout=10) as worker:
        challenge = json.loads(worker.recv(4096))["challenge"]
        worker.sendall(json.dumps({"proof": proved(TOKEN, "store", challenge), "generation": 1}).encode() + b"\n")
        worker.sendall(b'{"do": "explode"}\n')
        assert worker.recv(4096) == b""
    assert store.add("count", 1) == 1


def test_a_server_that_has_gone_is_a_network_error(server, store):
    store.set("a", b"1")
    server.close()
    with pytest.raises(dist.DistNetworkError, match="does not answer"):
        store.get("a")


def test_many_ranks_meet_at_one_server(server):
    ranks = 32
    stores = [RemoteStore(server.address, 1, TOKEN) for _ in range(ranks)]
    found = [None] * ranks

    def meet(rank):
        stores[rank].set(f"{rank}", b"%d" % rank)
        found[rank] = stores[rank].multi_get([f"{each}" for each in range(ranks)])

    threads = [threading.Thread(target=meet, args=(rank,)) for rank in range(ranks)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert found == [[b"%d" % rank for rank in range(ranks)]] * ranks
    for each in stores:
        each.close()
