"""How long DistributedDataParallel made this rank wait for the others: it starts and awaits its collectives in C++."""

import time
import weakref

from torch.nn.parallel import DistributedDataParallel

_S = 1e-9


class DdpTimes:
    """Reads the times that DistributedDataParallel itself takes of each backward pass; it has them one step later.

    On CUDA its times are those of the CPU, which only queues collectives. The model is not kept alive.
    """

    def __init__(self, model: DistributedDataParallel) -> None:
        self._model = weakref.ref(model)
        self._newest_ns = 0
        # By default it takes the times of each hundredth step.
        model._set_ddp_runtime_logging_sample_rate(1)  # type: ignore[no-untyped-call]  # noqa: SLF001 - no public name

    def take(self) -> tuple[float, float] | None:
        """How long the newest backward pass waited after its own work, and when it ended, by `time.monotonic`.

        ``None`` if no pass has ended since the last call.
        """
        model = self._model()
        if model is None or model.logger is None:
            return None
        logged = model.logger._get_ddp_logging_data().ints_map  # noqa: SLF001 - as above
        computed_ns, ended_ns = logged.get("backward_compute_time_end", 0), logged.get("backward_comm_time_end", 0)
        if not 0 < computed_ns < ended_ns or ended_ns == self._newest_ns:
            return None
        self._newest_ns = ended_ns
        ago_s = (time.time_ns() - ended_ns) * _S
        return (ended_ns - computed_ns) * _S, time.monotonic() - ago_s
