"""A served model while its ranks die: failed requests and latencies, beside a server that is restarted.

    python tests/bench/jobs/inference.py [--ways replicated,tensor] [--kills 5] [--every 15] [--users 4]
        [--locust FILE] [--seed 1]

Four ranks serve a small model over HTTP; locust asks at a fixed rate and checks each answer. Every few seconds one
rank, drawn by lot, is killed; rank 0, which takes the requests, is one of them. With lumctl its accelerator falls off
the bus too, and a spare takes its place; afterwards the ranks return to their own accelerators. The contender is the
same script under torchrun, which restarts all ranks. Client, ranks and simulator share this machine's cores.

Printed for each: requests, those without an answer, wrong answers (any ends the benchmark with 1), percentiles of
latency in the seconds after a kill and outside of them, and the longest time without an answer after each kill.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from recover import mend

from lumctl.cli.drill import drilling
from lumctl.inventory.load import example, load_inventory
from lumctl.training.picture import this_machine

RANKS, TOKENS, A_SECOND = 4, 8, 10.0
PROMPTS = ["import os", "def f", "class C", "for each"]
AFTER_KILL_S, STARTS_WITHIN_S, ANSWERS_WITHIN_S = 10.0, 180.0, 60.0


@dataclass(frozen=True)
class Serving:
    """A served model. ``kill`` ends a rank, and returns when it is able to lose another.

    The file ``announced`` says where rank 0 answers, as a name server does on a rack.
    """

    announced: Path
    kill: Callable[[int], None]


@contextlib.contextmanager
def lumctl(way: str, folder: Path) -> Iterator[Serving]:
    """Under lumctl, on the simulated rack ring4."""
    announced = folder / "url"
    text = example("ring4").read_text()
    command = f"[python3, -m, lumctl.training.example.serve, --parallel, {way}, --port, '0', --announce, {announced}]"
    replaced = text.replace('[python3, -m, lumctl.training.example, --steps, "100000"]', command)
    assert replaced != text, "the example's command has changed"
    (folder / "ring4.yaml").write_text(replaced)
    with drilling(load_inventory(folder / "ring4.yaml"), "train") as drill:
        drill.settle()

        def kill(rank: int) -> None:
            drill.strike([rank], lost=True)
            mend(drill)

        yield Serving(announced, kill)


@contextlib.contextmanager
def torchrun(way: str, folder: Path) -> Iterator[Serving]:
    """Under torchrun, which restarts all ranks when one has died."""
    announced = folder / "url"
    argv = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={RANKS}", "--max-restarts=1000"]
    argv += ["--standalone", "--monitor-interval=0.05", "-m", "lumctl.training.example.serve"]
    argv += ["--parallel", way, "--port", "0", "--announce", str(announced)]
    # Otherwise a restart may hang on a store that its own rank 0 served.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    with (folder / "log").open("wb") as log:
        agent = subprocess.Popen(argv, env=environment, stdout=log, stderr=log)

        def kill(rank: int) -> None:
            os.kill(workers(agent.pid)[rank], signal.SIGKILL)
            answered(announced, STARTS_WITHIN_S)

        try:
            yield Serving(announced, kill)
        finally:
            agent.send_signal(signal.SIGTERM)
            agent.wait(60)


def workers(agent: int) -> list[int]:
    """The processes of the ranks, by rank."""
    children = Path(f"/proc/{agent}/task/{agent}/children").read_text().split()
    ranks = {}
    for child in children:
        with contextlib.suppress(OSError):
            for variable in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
                if variable.startswith(b"RANK="):
                    ranks[int(variable[5:])] = int(child)
    return [ranks[rank] for rank in range(RANKS)]


def answered(announced: Path, within_s: float) -> dict[str, list[int]]:
    """The answers to the prompts, asked again until the server answers all."""
    until, pause = time.monotonic() + within_s, threading.Event()
    while True:
        try:
            return {prompt: _ask(announced, prompt) for prompt in PROMPTS}
        except OSError:
            if time.monotonic() > until:
                raise
            pause.wait(0.1)


def _ask(announced: Path, prompt: str) -> list[int]:
    url = announced.read_text().strip()
    body = json.dumps({"prompt": prompt, "tokens": TOKENS}).encode()
    with urllib.request.urlopen(f"{url}/generate", body, timeout=ANSWERS_WITHIN_S) as answer:  # noqa: S310 - our own server
        tokens: list[int] = json.load(answer)["tokens"]
    return tokens


@dataclass(frozen=True)
class Request:
    """One request of the load, by the clock of the machine."""

    began: float
    ended: float
    came: bool
    right: bool

    @property
    def ms(self) -> float:
        """From the question to its answer, or to its failure."""
        return 1000 * (self.ended - self.began)


Kill = tuple[float, int]
"""When, and of which rank."""


def under_load(serving: Serving, options: argparse.Namespace, folder: Path) -> tuple[list[Request], list[Kill]]:
    """The requests of a load, and when which ranks were killed meanwhile."""
    (folder / "answers.json").write_text(json.dumps(answered(serving.announced, STARTS_WITHIN_S)))
    log, choice, kills = folder / "requests", random.Random(options.seed), list[Kill]()
    argv = [options.locust, "-f", str(Path(__file__).with_name("inference_load.py")), "--headless", "--only-summary"]
    argv += ["-u", str(options.users), "-r", str(options.users), "-H", "http://announced"]
    environment = {
        "ANNOUNCED": str(serving.announced),
        "ANSWERS": str(folder / "answers.json"),
        "LOG": str(log),
        "A_SECOND": str(A_SECOND),
    }
    with (folder / "locust").open("wb") as said:
        client = subprocess.Popen(argv, env={**os.environ, **environment}, stdout=said, stderr=said)
        try:
            pause = threading.Event()
            pause.wait(options.every)
            for _ in range(options.kills):
                kills.append((time.time(), choice.randrange(RANKS)))
                serving.kill(kills[-1][1])
                pause.wait(max(0.0, kills[-1][0] + options.every - time.time()))
        finally:
            client.terminate()
            client.wait(60)
    return [Request(**json.loads(line)) for line in log.read_text().splitlines()], kills


def show(name: str, requests: list[Request], kills: list[Kill]) -> int:
    """Print the figures; gives the number of wrong answers."""
    near = [each for each in requests if any(kill <= each.ended <= kill + AFTER_KILL_S for kill, _ in kills)]
    far = [each for each in requests if each not in near]
    failed = [each.ended for each in requests if not each.came]
    wrong = sum(each.came and not each.right for each in requests)
    print(f"  {name:9} {len(requests)} requests, {len(failed)} failed, {wrong} wrong")
    for who, some in (
        ("rank 0, which takes the requests", [at for at, rank in kills if rank == 0]),
        ("another rank", [at for at, rank in kills if rank]),
    ):
        if some:
            after = sum(any(at <= end <= at + AFTER_KILL_S for at in some) for end in failed)
            print(f"    {len(some)} kills of {who}: {after / len(some):.1f} failed per kill")
    for part, some in (f"{AFTER_KILL_S:g} s after a kill", near), ("else", far):
        times = [each.ms for each in some if each.right]
        if len(times) > 1:
            cut = quantiles(times, n=100)
            shown = f"p50 {cut[49]:7.0f}  p99 {cut[98]:7.0f}  worst {max(times):7.0f}"
            print(f"    {part:18} {len(times):5} answers, ms: {shown}")
    came = sorted(each.ended for each in requests if each.right)
    ends = [*(kill for kill, _ in kills[1:]), float("inf")]
    gaps = [longest_silence(came, kill, end) for (kill, _), end in zip(kills, ends, strict=True)]
    print(f"    without an answer after a kill, s: median {median(gaps):.2f}  worst {max(gaps):.2f}", flush=True)
    return wrong


def longest_silence(came: list[float], kill: float, end: float) -> float:
    """The longest time between two answers from a kill to the next one, seconds; the last one before it counts too."""
    before = max((at for at in came if at <= kill), default=kill)
    after = [at for at in came if kill < at <= end]
    return max((later - earlier for earlier, later in zip([before, *after], after, strict=False)), default=float("inf"))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ways", default="replicated,tensor")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--every", type=float, default=15.0, help="seconds between kills")
    parser.add_argument("--users", type=int, default=4)
    parser.add_argument("--locust", default=shutil.which("locust", path=str(Path(sys.executable).parent)) or "locust")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}  {this_machine()}")
    wrong = 0
    for way in options.ways.split(","):
        print(
            f"{way}, {RANKS} ranks, {options.users} clients at {A_SECOND:g} requests of {TOKENS} tokens a second each"
        )
        for server in (lumctl, torchrun):
            with TemporaryDirectory(prefix="lumctl-bench-") as folder, server(way, Path(folder)) as serving:
                wrong += show(server.__name__, *under_load(serving, options, Path(folder)))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
