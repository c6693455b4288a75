"""When a GPU reaches a point of its stream, by the clock of its machine: the CPU only queues what the GPU does later.

Not run on GPUs yet: written to the documentation of CUDA events in PyTorch 2.13, and tested with stand-ins for them.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

_BASE_LASTS_S = 10.0
"""CUDA tells the time between two events in milliseconds, in single precision: after 10 s to a microsecond."""


class CudaClock:
    """Stamps in the stream that the calling thread uses, and their times once the GPU has reached them.

    ``clock`` is that of the machine, in seconds; ``cuda`` is the module.
    """

    def __init__(
        self, device: torch.device, *, clock: Callable[[], float] = time.monotonic, cuda: Any = torch.cuda
    ) -> None:
        self._device, self._clock, self._cuda = device, clock, cuda
        self._idle: Any = None
        """A stream without other work. Made when it is needed: a process that uses CUDA must not be forked."""
        self._base: tuple[Any, float] | None = None
        """An event, and when the GPU reached it."""

    def stamp(self) -> Any:
        """Mark the present point of the stream; ``None`` within a CUDA graph, whose events have no time."""
        if self._cuda.is_current_stream_capturing():
            return None
        return self._recorded(self._cuda.current_stream(self._device))

    def time_of(self, stamp: Any) -> float:
        """When the GPU reached a stamp, in seconds; waits until it has.

        Raises:
            RuntimeError: the GPU has failed.
        """
        stamp.synchronize()
        event, at = self._base_now()
        return at + float(event.elapsed_time(stamp)) / 1000.0

    def _base_now(self) -> tuple[Any, float]:
        if self._base is None or self._clock() - self._base[1] > _BASE_LASTS_S:
            self._idle = self._idle or self._cuda.Stream(self._device)
            event = self._recorded(self._idle)
            event.synchronize()
            self._base = event, self._clock()
        return self._base

    def _recorded(self, stream: Any) -> Any:
        event = self._cuda.Event(enable_timing=True)
        event.record(stream)
        return event
