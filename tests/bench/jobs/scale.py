"""The coordinator of a job of up to 1,000 ranks: its CPU, how soon all know of a failure, its memory.

    python tests/bench/jobs/scale.py [--ranks 64,256,1000] [--seconds 10] [--failures 5] [--beside OTHER]

One other process plays all hosts, 8 ranks on each, over Unix sockets, by which `lumctl job run` reaches the agents of a
simulator: each rank does a step per second, and does what it is ordered at once. No PyTorch, no health, no light: a
failed rank continues in place. Times run from the failure, as its agent reports it:
  all know   the last rank has been ordered to hold
  formed     the last rank has joined the new group
  step       the first step of the new group is known
OTHER is a checkout of another commit. With one whose agents report each rank and each heartbeat, add --per-rank: then
the hosts of OTHER do so.
"""

import argparse
import json
import math
import os
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).parents[3]
OF_HOST = 8
BEAT_S, STEP_S = 0.25, 1.0
STARTS_WITHIN_S, RECOVERS_WITHIN_S = 90.0, 60.0
SPARES = 8


class LightHosts:
    """All agents and all workers of a job, in one loop."""

    def __init__(self, folder, hosts, control, per_rank):
        self.per_rank, self.control = per_rank, control
        self.selector = selectors.DefaultSelector()
        self.lines, self.unsent, self.received = {}, {}, {}
        self.workers, self.of_host = {}, {host: [] for host in hosts}
        self.joined, self.ranks, self.failed_at = 0, {}, math.inf
        self.waits_for = set()
        for host in hosts:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(folder / host))
            listener.listen(4)
            self.selector.register(listener, selectors.EVENT_READ, (self.accept, host))
        self.selector.register(control, selectors.EVENT_READ, (self.fail, None))

    def run(self):
        step_at = beat_at = time.monotonic()
        while True:
            for key, mask in self.selector.select(max(0.0, min(step_at, beat_at) - time.monotonic())):
                call, of = key.data
                call(key.fileobj, of, mask)
            now = time.monotonic()
            if now >= step_at:
                step_at += STEP_S
                self.step()
            if now >= beat_at:
                beat_at += BEAT_S
                self.beat()

    def accept(self, listener, host, _mask):
        connection, _ = listener.accept()
        connection.setblocking(False)  # noqa: FBT003 - as it is called
        self.lines[host], self.unsent[host], self.received[host] = connection, bytearray(), bytearray()
        self.selector.register(connection, selectors.EVENT_READ, (self.ready, host))
        self.tell(host, {"tell": "list", "workers": []})

    def ready(self, connection, host, mask):
        if mask & selectors.EVENT_WRITE:
            self.flush(host)
        if mask & selectors.EVENT_READ:
            chunk = connection.recv(1 << 20)
            if not chunk:
                os._exit(0)
            received = self.received[host]
            received += chunk
            *lines, rest = bytes(received).split(b"\n") if b"\n" in chunk else [bytes(received)]
            received[:] = rest
            for line in lines:
                self.ask(host, json.loads(line))

    def tell(self, host, message):
        self.unsent[host] += json.dumps(message, separators=(",", ":")).encode() + b"\n"
        self.flush(host)

    def flush(self, host):
        unsent, connection = self.unsent[host], self.lines[host]
        try:
            while unsent:
                del unsent[: connection.send(unsent)]
        except BlockingIOError:
            pass
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if unsent else 0)
        if self.selector.get_key(connection).events != wanted:
            self.selector.modify(connection, wanted, (self.ready, host))

    def say(self, of, word, **what):
        self.tell(of["host"], self.said(of, {"say": word, **what}))

    def said(self, worker, message):
        return {"tell": "said", "worker": worker["name"], "message": message, "at": time.time()}

    def ask(self, host, ask):
        match ask["ask"]:
            case "start":
                worker = {"name": ask["worker"], "host": host, "done": 0, "generation": 0, "in": False}
                self.workers[worker["name"]] = worker
                self.of_host[host].append(worker)
                self.say(worker, "hello", worker=worker["name"], pid=1)
                address = ["127.0.0.1", 1]
                self.say(worker, "ready", store=address, state=address, layout="replicated", done=0)
            case "tell" if "worker" in ask:
                self.told(ask["worker"], ask["message"])
            case "tell":
                for name, own in ask["orders"].items():
                    self.told(name, {**ask["message"], **own})

    def told(self, name, order):
        worker = self.workers.get(name)
        if worker is None:
            return
        match order["do"]:
            case "hold":
                worker["in"] = False
                self.waits_for.discard(name)
                if not self.waits_for and self.failed_at < math.inf:
                    self.answer(time.time() - self.failed_at)
                self.say(worker, "held", generation=order["generation"], done=worker["done"], keeps={})
            case "load":
                worker["done"] = order["done"]
                self.say(worker, "loaded", done=order["done"], bytes=0, seconds=0.0)
            case "join":
                worker["in"], worker["generation"] = True, order["generation"]
                self.say(worker, "joined", generation=order["generation"], rank=order["rank"], done=worker["done"])
                self.joined += 1
                if self.joined == order["world"]:
                    self.joined = 0
                    self.step(first=True)

    def answer(self, known_s):
        self.failed_at = math.inf
        self.control.send(json.dumps({"known_s": known_s}).encode() + b"\n")

    def fail(self, control, _of, _mask):
        name = control.recv(4096).decode().strip()
        if not name:
            os._exit(0)
        worker = self.workers.pop(name)
        self.of_host[worker["host"]].remove(worker)
        self.failed_at = time.time()
        self.waits_for = {each["name"] for each in self.workers.values() if each["in"]}
        ended = {"tell": "exited", "worker": name, "code": None, "signal": 9, "at": self.failed_at}
        self.joined = 0
        self.tell(worker["host"], ended)

    def step(self, *, first=False):
        for host, workers in self.of_host.items():
            messages = {}
            for worker in workers:
                if worker["in"]:
                    worker["done"] += 1
                    of = {"generation": worker["generation"], "done": worker["done"], "at": time.time(), "loss": 1.25}
                    messages[worker["name"]] = {"say": "stepped", **of}
            names = list(messages)
            alone = names if self.per_rank else names[:1] if first else []
            for name in alone:
                self.tell(host, self.said(self.workers[name], messages.pop(name)))
            if messages:
                self.tell(host, {"tell": "said", "messages": messages, "at": time.time()})

    def beat(self):
        if self.per_rank:
            for worker in self.workers.values():
                self.say(worker, "beat", done=worker["done"])


def memory_mib():
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmRSS"].split()[0]) / 1024


def inventory_of(folder, ranks):
    hosts = math.ceil(ranks / OF_HOST)
    path = folder / "inventory.yaml"
    accelerator = f'{{id: "{{host}}-g[0-{OF_HOST - 1}]", model: M, memory_gib: 1'
    path.write_text(
        "lumctl: 1\nracks: {r: {}}\nhosts:\n"
        f"  - name: h[0-{hosts - 1}]\n    accelerators: [{accelerator}}}]\n"
        f"  - name: s0\n    accelerators: [{accelerator}, role: spare}}]\n"
        f"jobs:\n  - name: train\n    ranks: h[0-{hosts - 1}]-g[0-{OF_HOST - 1}]\n    run: {{command: [train]}}\n"
    )
    return path, [f"h{number}" for number in range(hosts)] + ["s0"]


class MeasuredJob:
    """A job with light hosts, and the figures of its coordinator as data."""

    def __init__(self, ranks, per_rank):
        folder = Path(tempfile.mkdtemp(prefix="scale-"))
        path, hosts = inventory_of(folder, ranks)
        self.control, theirs = socket.socketpair()
        self.playing = os.fork()
        if not self.playing:
            self.control.close()
            LightHosts(folder, hosts, theirs, per_rank).run()
        theirs.close()
        self.control.settimeout(RECOVERS_WITHIN_S)
        self.figures = {"ranks": ranks, "start_s": None}
        self.coordinator = self.coordinator_of(folder, path)
        self.state = self.coordinator.state

    def coordinator_of(self, folder, path):
        # Imported here: the process that plays the hosts does without.
        from lumctl.inventory.job_run import JobRun
        from lumctl.inventory.load import load_inventory
        from lumctl.training.coordinator import agent_reports, failures
        from lumctl.training.coordinator.coordinator import Coordinator
        from lumctl.training.coordinator.state import Effects, JobState
        from lumctl.training.job_run import AgentLines
        from lumctl.training.protocol import MessageLine

        def open_line(host):
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(str(folder / host))
            return MessageLine(connection)

        def examine(_accelerators, _failed_only):
            coordinator.post(failures.examined, {})
            coordinator.post(failures.repaired, None)

        def hear(host, message, why):
            coordinator.post(agent_reports.receive, host, message, why)

        inventory = load_inventory(path)
        job = inventory.jobs["train"]
        self.before_mib = memory_mib()
        lines = AgentLines(open_line, "scale", hear)
        spares = [f"s0-g{number}" for number in range(SPARES)]
        effects = Effects(
            ask=lines.ask,
            open=lines.open,
            examine=examine,
            placement=lambda: list(job.ranks),
            ready_on=lambda: spares,
            environment=lambda _host: {},
            say=lambda _line: None,
        )
        coordinator = Coordinator(JobState(inventory, job, JobRun(("train",)), effects))
        return coordinator

    def run(self, seconds, failures):
        """Run the job; never returns."""
        threading.Thread(target=self.report, args=(seconds, failures), daemon=True).start()
        self.coordinator.run()

    def report(self, seconds, failures):
        self.drive(seconds, failures)
        print(json.dumps(self.figures), flush=True)
        os.kill(self.playing, signal.SIGKILL)
        os._exit(0)

    def drive(self, seconds, failures):
        began = time.monotonic()
        if not until(lambda: self.state.phase == "running", STARTS_WITHIN_S):
            return
        self.figures["start_s"] = time.monotonic() - began
        time.sleep(2.5)
        cpu, at = time.process_time(), time.monotonic()
        time.sleep(seconds)
        self.figures["cpu"] = (time.process_time() - cpu) / (time.monotonic() - at)
        self.figures["mib"], self.figures["own_mib"] = memory_mib(), memory_mib() - self.before_mib
        self.figures["threads"] = threading.active_count() - 1  # without this one
        found = self.figures["failures"] = []
        for number in range(failures):
            if (times := self.fail(7 + number * 101)) is None:
                return
            found.append(times)

    def fail(self, number):
        """Have a rank fail; seconds until all know, until the group is formed, and until a step; ``None``: never."""
        members, recovered = self.state.group.members, len(self.state.recoveries)
        self.control.send(members[number % len(members)].encode())
        try:
            known_s = json.loads(self.control.recv(4096))["known_s"]
        except TimeoutError:
            return None
        if not until(lambda: len(self.state.recoveries) > recovered, RECOVERS_WITHIN_S):
            return None
        record = self.state.recoveries[-1]
        time.sleep(1.5)
        return known_s, record.since("joined"), record.since("step")


def until(found, within_s):
    end = time.monotonic() + within_s
    while not found():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def shown(figures):
    if figures.get("start_s") is None:
        return f"{figures['ranks']:>5}   has not started within {STARTS_WITHIN_S:.0f} s"

    def ms(times):
        whole = f"{1000 * statistics.median(times):6.0f} ({1000 * max(times):.0f})" if times else "never"
        return f"{whole:>15}"

    times = "".join(ms([each[column] for each in figures["failures"]]) for column in range(3))
    return (
        f"{figures['ranks']:>5} {100 * figures['cpu']:>8.1f} % {figures['start_s']:>8.2f}{times}"
        f" {figures['mib']:>8.0f} {figures['own_mib']:>5.0f} {figures['threads']:>7}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="64,256,1000")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--failures", type=int, default=5)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--per-rank", action="store_true")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = [int(each) for each in options.ranks.split(",")]
    if options.measure:
        MeasuredJob(sizes[0], options.per_rank).run(options.seconds, options.failures)
        return
    print("time in ms: median (worst)")
    print("ranks        CPU  start, s       all know         formed           step  MiB all   own threads")
    for size in sizes:
        for checkout in [HERE] if options.beside is None else [options.beside.resolve(), HERE]:
            words = ["--measure", "--ranks", str(size), "--seconds", str(options.seconds)]
            words += ["--failures", str(options.failures)]
            words += ["--per-rank"] if options.per_rank and (options.beside is None or checkout != HERE) else []
            said = subprocess.run(
                [sys.executable, __file__, *words],
                env={**os.environ, "PYTHONPATH": str(checkout)},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout
            name = "" if options.beside is None else "  this" if checkout == HERE else "  other"
            print(shown(json.loads(said)) + name, flush=True)


if __name__ == "__main__":
    main()
