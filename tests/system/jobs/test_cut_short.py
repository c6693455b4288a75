"""A collective of whose bytes some have come when its peer dies or hangs: gloo forgets some of those, lumctl none."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from collectives import OPERATIONS

from lumctl.training.torch.group import CLOSED_WITHIN_S, JoinOrder, ProcessGroup
from lumctl.training.torch.member import of_group

PEER = Path(__file__).with_name("cut_rank.py")
ELEMENTS = 60_000_000
"""240 MB: on its way for long enough to be cut."""
SOON_S = 2.0
WITHIN_S = 40.0


@pytest.fixture
def group():
    with closing(ProcessGroup(torch.device("cpu"), "127.0.0.1", "token")) as made:
        yield made


@pytest.fixture
def joined(group):
    """Forms a group with a process that does an operation with us; gives that process."""
    peers = []

    def join(generation, operation, elements=ELEMENTS):
        words = [str(generation), str(group.store[1]), operation, str(elements)]
        path = os.pathsep.join(filter(None, sys.path))
        peer = subprocess.Popen([sys.executable, str(PEER), *words], env={**os.environ, "PYTHONPATH": path})
        peers.append(peer)
        group.make(JoinOrder(generation, 0, 2, group.store), wanted=lambda: True)
        return peer

    yield join
    for peer in peers:
        peer.kill()
        peer.wait()


def cut(group, peer, tensor, number):
    """Once some bytes have come, end the peer, and give the group up as a hold does; when that was is told."""
    at = []

    def act():
        until = time.monotonic() + WITHIN_S
        while not tensor[0] and time.monotonic() < until:
            pass  # it is a matter of milliseconds
        peer.send_signal(number)
        at.append(time.monotonic())
        group.abort()

    thread = threading.Thread(target=act)
    thread.start()
    return thread, at


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("operation", ["send", "broadcast"])
def test_who_waits_for_the_rest_goes_on_and_is_in_the_next_group(group, joined, operation, number):
    peer = joined(1, operation)
    tensor = torch.zeros(ELEMENTS)
    cutting, at = cut(group, peer, tensor, number)
    with pytest.raises(RuntimeError) as told:
        OPERATIONS[operation](tensor, 0)
    cutting.join()
    assert tensor[0] == 1
    assert tensor[-1] == 0, "it was whole before it was cut: this machine needs a larger tensor"
    assert of_group(told.value, is_broken=group.is_broken)
    group.destroy()
    assert time.monotonic() - at[0] < SOON_S < CLOSED_WITHIN_S
    came = tensor.count_nonzero()
    joined(2, "all_reduce", 1000)
    mine = torch.ones(1000)
    dist.all_reduce(mine)
    assert mine.sum() == 2000
    assert tensor.count_nonzero() == came, "nothing is written to a tensor that its owner has again"


@pytest.mark.parametrize("operation", ["all_reduce", "all_to_all"])
def test_operations_of_several_parts_end_as_well(group, joined, operation):
    peer = joined(1, operation)
    os.kill(peer.pid, signal.SIGSTOP)
    began = threading.Timer(0.1, group.abort)
    began.start()
    with pytest.raises(RuntimeError) as told:
        OPERATIONS[operation](torch.ones(ELEMENTS), 0)
    began.join()
    assert of_group(told.value, is_broken=group.is_broken)


def test_an_operation_that_nobody_waits_for_does_not_keep_a_group_from_being_left(group, joined):
    peer = joined(1, "broadcast")
    tensor = torch.zeros(ELEMENTS)
    cutting, at = cut(group, peer, tensor, signal.SIGSTOP)
    work = dist.broadcast(tensor, 1, async_op=True)
    cutting.join()
    assert not work.is_completed()
    del work
    group.destroy()
    assert time.monotonic() - at[0] < SOON_S
