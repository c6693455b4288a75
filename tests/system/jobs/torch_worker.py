"""A training script for tests, and what forks it: PyTorch is imported once for all workers of a test session.

On each line of standard input: {"environment": {...}, "options": {...}} starts a worker and answers with its pid;
{"wait": PID} answers with its exit status once it has ended, as `subprocess` has it.
"""

import ctypes
import hashlib
import json
import os
import random
import signal
import struct
import sys
import time
import traceback
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

import lumctl.training.torch as recovery
from lumctl.training.torch import stores

PARENT_DIED = 1
"""``PR_SET_PDEATHSIG`` of prctl(2)."""
FAR_PORT = 65535
"""As gloo compares addresses, no other is greater: whoever has it is to call, not to be called."""


def main() -> None:
    torch.set_num_threads(1)
    torch.optim.AdamW(Model(8).parameters())  # the first one imports as much again as PyTorch itself
    tell("ready")
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        elif not (answer := os.fork()):
            os._exit(work(request))  # without clearing up all that PyTorch has imported, which takes seconds
        tell(answer)


def work(request: dict) -> int:
    ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)  # no worker outlives the test
    os.environ.update(request["environment"])
    with Path(request["options"].pop("log")).open("wb") as log:
        os.dup2(log.fileno(), 2)
        os.dup2(log.fileno(), 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    try:
        train(**request["options"])
    except SystemExit as ended:
        return ended.code
    except Exception:  # noqa: BLE001 - it is told, and the process ends
        traceback.print_exc()
        return 1
    return 0


def tell(what) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


class Model(nn.Module):
    """1,000 parameters or so, with all that an interrupted step may spoil: running means and random numbers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, width), nn.BatchNorm1d(width), nn.Dropout(0.2), nn.Linear(width, 8))

    def forward(self, x):
        return self.body(x).square().mean()


def train(*, result, steps=8, layout="replicated", width=58, fault=None, pace_s=0.0, spare_seed=None, **options):
    unique = layout == "unique"
    torch.manual_seed(1 if spare_seed is None else spare_seed)
    model = Model(width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    faults = Fault(fault)

    def shape(rank: int, _world: int) -> None:
        torch.manual_seed(100 + rank)
        model.load_state_dict(Model(width).state_dict())

    seen = []
    with recovery.attach(
        model=model,
        optimizer=optimizer,
        state={"scheduler": scheduler},
        layout=layout,
        shape=shape if unique else None,
        seed=7,
        **options,
    ) as job:
        for step in job.steps(steps):
            with step:
                seen.append(step.number)
                optimizer.zero_grad()
                faults.at("begun", step.number, job)
                x = torch.randn(16, 8) + random.random() + job.rank  # noqa: S311 - seeded
                loss = model(x)
                loss.backward()
                faults.at("before", step.number, job)
                if unique:
                    share = torch.cat([p.grad.reshape(-1) for p in model.parameters()]).sum().reshape(1)
                    if job.world > 1:
                        dist.all_reduce(share)
                    model.body[0].bias.grad += share / job.world
                else:
                    job.average(model.parameters())
                faults.at("averaged", step.number, job)
                optimizer.step()
                scheduler.step()
                step.report(loss)
                faults.at("after", step.number, job)
                time.sleep(pace_s)
    numbers = {
        "rank": job.rank,
        "trained": digest([model.named_parameters(), optimizer.state_dict()]),
        "buffers": digest(model.named_buffers()),
        "seen": seen,
        "scheduled": scheduler.last_epoch,
    }
    Path(result).write_text(json.dumps(numbers))


def digest(what) -> str:
    """Equal where every bit is."""
    text = json.dumps(what, default=lambda one: one.tolist() if isinstance(one, torch.Tensor) else list(one))
    return hashlib.sha256(text.encode()).hexdigest()


class Fault:
    """Does something to this process at one place of one step, once."""

    def __init__(self, fault: dict | None) -> None:
        self.fault = fault or {}
        if self.fault.get("what") == "silent":
            self._publish_and_stop()

    def at(self, where: str, number: int, job) -> None:
        fault = self.fault
        if (fault.get("at"), fault.get("step")) != (where, number) or job.rank not in fault["ranks"]:
            return
        self.fault = {}
        match fault["what"]:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "wait":  # for a peer that will never send
                dist.recv(torch.zeros(1), fault["peer"])
            case "error":
                raise ValueError("bad sample")

    def _publish_and_stop(self) -> None:
        """A peer that tells its address, which is such that it is to call the others, and then hangs."""
        ours = stores.PortRecorder.set

        def published(store, key, value):
            if key.endswith(f"/{self.fault['rank']}"):
                value = value if isinstance(value, bytes) else bytes(value, "latin-1")
                at = 8 + struct.unpack_from("<Q", value)[0] + 8 + 2
                ours(store, key, value[:at] + struct.pack(">H", FAR_PORT) + value[at + 2 :])
                os.kill(os.getpid(), signal.SIGSTOP)
            else:
                ours(store, key, value)

        stores.PortRecorder.set = published


if __name__ == "__main__":
    main()
