"""torchrun's own elastic restart, on the example's model and data; a checkpoint after each step.

`python tests/bench/jobs/contenders/torchrun.py 4 --kind agents` starts one agent a rank, as on hosts of their own;
`--kind one` a single agent for all ranks; `agents-shared` is `agents` as PyTorch ships it, without the setting of the
environment that keeps a restart from hanging on a store that its own rank 0 served.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from measured import Measured, free_port, killed_at_work, main

WORKER = Path(__file__).with_name("torchrun_worker.py")
KINDS = ["agents", "one", "agents-shared"]
END_S = 10


def measure(kind: str, ranks: int, killed: int, folder: Path) -> Measured:
    """Start a job, kill one rank, wait for the next step of all."""
    job = partial(_job, kind, ranks, folder)
    step_ms, found = killed_at_work(job, ranks, killed, {ranks}, folder)
    return Measured(f"torchrun {kind}", ranks, killed, step_ms, found.get(ranks))


@contextlib.contextmanager
def _job(kind: str, ranks: int, folder: Path, ear: str) -> Iterator[None]:
    agents = 1 if kind == "one" else ranks
    shared = {} if kind == "agents-shared" else {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **shared}
    argv = [sys.executable, "-m", "torch.distributed.run", f"--nnodes={agents}", f"--nproc-per-node={ranks // agents}"]
    argv += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=bench"]
    argv += ["--local-addr=127.0.0.1"]
    argv += ["--max-restarts=3", "--monitor-interval=0.05", str(WORKER), ear, str(folder / "checkpoint.pt")]
    with (folder / "log").open("wb") as log:
        running = [
            subprocess.Popen(argv, env=environment, stdout=log, stderr=log, start_new_session=True)
            for _ in range(agents)
        ]
        try:
            yield
        finally:
            for agent in running:
                agent.send_signal(signal.SIGTERM)  # an agent ends its workers
            for agent in running:
                try:
                    agent.wait(END_S)
                except subprocess.TimeoutExpired:
                    agent.kill()
                    agent.wait()


if __name__ == "__main__":
    main(measure, KINDS)
