"""Handing a state over: only to who knows the token, only while it stands still, and whole or not at all."""

import socket
import threading
from contextlib import closing

import pytest
import torch

from lumctl.training.torch.state_transfer import (
    Fetcher,
    NotHereError,
    StateServer,
    StateTransferError,
    WantedState,
    proved,
)
from lumctl.training.torch.states import lay_out

TOKEN = "correct horse"  # noqa: S105 - this test's
TREE = {"weights": torch.arange(1000.0)}


def find(wanted):
    if wanted.done != 5:
        raise NotHereError(f"nothing after {wanted.done} steps")
    return lay_out(TREE)


@pytest.fixture
def server():
    with closing(StateServer("127.0.0.1", TOKEN, find)) as server:
        server.open()
        yield server


def test_a_state_comes_whole(server):
    fetched = Fetcher(TOKEN).fetch(server.address, WantedState(5, None))
    assert fetched.done == 5
    assert torch.equal(fetched.tree()["weights"], TREE["weights"])


def test_the_token_is_asked_for_and_never_sent(server):
    with pytest.raises(StateTransferError, match="token does not belong to this job"):
        Fetcher("another").fetch(server.address, WantedState(5, None))
    # What one answer proves is of no use for another challenge.
    assert len({proved(TOKEN, "state", "a"), proved(TOKEN, "state", "b"), proved(TOKEN, "store", "a")}) == 3
    assert TOKEN not in proved(TOKEN, "state", "a")


def test_what_is_not_here_is_said(server):
    with pytest.raises(StateTransferError, match="nothing after 6 steps"):
        Fetcher(TOKEN).fetch(server.address, WantedState(6, None))


def test_a_worker_that_is_not_parked_hands_nothing_over(server):
    server.shut()
    with pytest.raises(StateTransferError, match="not parked"):
        Fetcher(TOKEN).fetch(server.address, WantedState(5, None))
    server.open()
    assert Fetcher(TOKEN).fetch(server.address, WantedState(5, None)).done == 5


def test_a_gate_that_shuts_cuts_what_is_on_its_way_rather_than_hand_over_what_steps_change():
    found, go_on = threading.Event(), threading.Event()

    def slow(_wanted):
        found.set()
        go_on.wait(10)
        return lay_out(TREE)

    with closing(StateServer("127.0.0.1", TOKEN, slow)) as server:
        server.open()
        failed = []

        def fetch():
            with pytest.raises(StateTransferError):
                Fetcher(TOKEN).fetch(server.address, WantedState(5, None))
            failed.append(True)

        fetching = threading.Thread(target=fetch)
        fetching.start()
        assert found.wait(10)
        shutting = threading.Thread(target=server.shut)
        shutting.start()
        fetching.join(10)
        assert failed == [True]
        assert shutting.is_alive()  # until nobody reads the state any more
        go_on.set()
        shutting.join(10)
        assert not shutting.is_alive()


def test_who_speaks_nonsense_is_left_and_others_are_served(server):
    with socket.create_connection(server.address) as odd:
        odd.sendall(b"GET /\n")
        odd.settimeout(10)
        assert b"challenge" in odd.recv(4096)
        assert odd.recv(4096) == b""
    assert Fetcher(TOKEN).fetch(server.address, WantedState(5, None)).done == 5


def test_a_state_that_ends_too_early_is_none():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def half():
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b'{"challenge": "x"}\n')
                connection.recv(4096)
                connection.sendall(b'{"done": 5, "bytes": 4096, "meta": {"d": []}}\n' + bytes(100))

        serving = threading.Thread(target=half)
        serving.start()
        with pytest.raises(StateTransferError, match="3996 bytes too early"):
            Fetcher(TOKEN).fetch(listener.getsockname(), WantedState(5, None))
        serving.join()


def test_a_fetch_from_who_hangs_can_be_cancelled():
    with socket.create_server(("127.0.0.1", 0)) as hung:
        fetcher = Fetcher(TOKEN)
        kept = []

        def cancel():
            kept.append(hung.accept()[0])
            fetcher.cancel()

        cancelling = threading.Thread(target=cancel)
        cancelling.start()
        with pytest.raises(StateTransferError):
            fetcher.fetch(hung.getsockname(), WantedState(5, None))
        cancelling.join()
        kept[0].close()
    with pytest.raises(StateTransferError, match="withdrawn"):
        fetcher.fetch(("127.0.0.1", 1), WantedState(5, None), still=lambda: False)
