"""Times of a GPU's stream, with stand-ins for CUDA's events: no GPU is needed, and none is proved right by this."""

from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from lumctl.training.torch.collective_times import MOST_ENDED, CollectiveTimes
from lumctl.training.torch.cuda_clock import CudaClock


class Gpu:
    """A GPU that does its work ``behind`` seconds after the CPU has queued it; its clock started long ago."""

    STARTED_AT = -1234.5

    def __init__(self):
        self.cpu, self.behind, self.capturing, self.waited = 50.0, 2.0, False, 0

    def cuda(self):
        gpu = self

        class Event:
            def __init__(self, *, enable_timing):
                assert enable_timing

            def record(self, stream):
                self.at = gpu.cpu + (0.0 if stream == "idle" else gpu.behind) - gpu.STARTED_AT

            def synchronize(self):
                if self.at + gpu.STARTED_AT > gpu.cpu:
                    gpu.cpu, gpu.waited = self.at + gpu.STARTED_AT, gpu.waited + 1

            def elapsed_time(self, other):
                return 1000.0 * (other.at - self.at)

        return SimpleNamespace(
            Event=Event,
            Stream=lambda _device: "idle",
            current_stream=lambda device: f"the one of {device}",
            is_current_stream_capturing=lambda: gpu.capturing,
        )

    def clock(self):
        return CudaClock(torch.device("cuda", 1), clock=lambda: self.cpu, cuda=self.cuda())


@pytest.fixture
def gpu():
    return Gpu()


@pytest.fixture
def times(gpu, monkeypatch):
    monkeypatch.setattr(dist, "get_process_group_ranks", lambda _group: [0, 1, 2, 3])
    monkeypatch.setattr(dist, "get_world_size", lambda: 4)
    return CollectiveTimes(lambda: gpu.cpu, gpu.clock())


class Work:
    """A collective under way."""


def collective(times, gpu, *, blocked=1.0, size=0):
    """One that the CPU queues at once, and whose stream waits for a while."""
    work, began = Work(), times.now
    times.started(SimpleNamespace(group_name="all"), work, began, size)
    began = times.now
    gpu.behind += blocked
    times.ended(work, began)


def test_a_stamp_has_the_time_at_which_the_gpu_reaches_it(gpu):
    clock = gpu.clock()
    stamp = clock.stamp()
    assert clock.time_of(stamp) == pytest.approx(52.0)
    assert gpu.waited == 1
    gpu.cpu = 3000.0  # another base
    assert clock.time_of(clock.stamp()) == pytest.approx(3002.0)
    assert clock.time_of(stamp) == pytest.approx(52.0)


def test_within_a_cuda_graph_nothing_is_stamped(gpu, times):
    gpu.capturing = True
    assert times.now is None
    collective(times, gpu)
    gpu.capturing = False
    assert times.take() == times.take() == []


def test_a_step_has_the_times_of_the_step_before_which_the_gpu_has_done(gpu, times):
    collective(times, gpu, blocked=0.5, size=4000)
    assert times.take() == []
    gpu.cpu, gpu.behind = 60.0, 3.0
    collective(times, gpu, blocked=0.25)
    assert times.take() == [["", 4, 52.0, 52.5, [4000, 0.5]]]
    assert gpu.waited == 0
    gpu.cpu = 70.0
    assert times.take() == [["", 4, 63.0, 63.25]]


def test_what_was_forgotten_is_not_told_of_a_later_step(gpu, times):
    collective(times, gpu)
    times.take()
    collective(times, gpu)
    times.forget()
    assert times.take() == times.take() == []


def test_a_step_of_countless_collectives_needs_no_more_memory(gpu, times):
    for _ in range(MOST_ENDED + 10):
        collective(times, gpu, blocked=0.0)
    assert len(times._ended) == MOST_ENDED
