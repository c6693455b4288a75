"""The daemon as systemd runs it: a process of its own, on a simulated rack, with real receivers and real signals."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from forked_commands import run_lumctl
from prometheus_client.parser import text_string_to_metric_families
from said import PATIENCE_S, Said
from waiting import until

from lumctl.inventory.load import example

GPU, SECOND_GPU, THIRD_GPU, HOST = "s1-gpu0", "s3-gpu0", "s0-gpu0", "s2"
"""Several GPUs, for one that is lost three times in a day stays degraded."""
TOKEN = "b34r3r"  # noqa: S105 - it opens nothing


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    # Not pytest's own folder: the path of a socket must be short.
    folder = Path(tempfile.mkdtemp(prefix="lumctl-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def environment(place: Path) -> dict[str, str]:
    (place / "run").mkdir(mode=0o700)
    inventory = place / "rack.yaml"
    inventory.write_text(example("prototype").read_text())
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(place),
        "XDG_STATE_HOME": str(place / "state"),
        "XDG_RUNTIME_DIR": str(place / "run"),
        "LUMCTL_INVENTORY": str(inventory),
        "LUMCTL_TARGET": "sim",
        "LANG": "C.UTF-8",
    }


@pytest.fixture(scope="module")
def lumctl(environment: dict[str, str]) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return run_lumctl(*words, env=environment)

    up = run("sim", "up", "--detach")
    assert up.returncode == 0, up.stderr
    yield run
    assert run("sim", "down").returncode == 0


@pytest.fixture(autouse=True)
def _well(lumctl):
    """Every test leaves a rack without faults behind it."""
    yield
    lumctl("sim", "clear")


class Watching:
    """A running daemon and what it says."""

    def __init__(self, environment: dict[str, str], *options: str) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "lumctl",
                "watch",
                "--interval",
                "0.2",
                "--listen",
                "127.0.0.1:0",
                "--settle",
                "0.5",
                *options,
            ],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._said = Said(self.process.stderr, lambda line: line.split(" ", 2)[-1])

    def hear(self, *words: str, after: int = 0) -> str:
        """The first line with all these words, once it has been said."""
        return self._said.hear(*words, after=after)

    @property
    def lines(self) -> list[str]:
        return self._said.lines

    def metrics(self) -> dict[str, float]:
        url = self.hear("metrics: ").partition(": ")[2]
        with urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310 - our own
            families = list(text_string_to_metric_families(answer.read().decode()))
        return {
            " ".join(
                [sample.name, *(f"{k}={v}" for k, v in sorted(sample.labels.items()) if k != "target")]
            ): sample.value
            for family in families
            for sample in family.samples
        }

    def health(self) -> int:
        url = self.hear("metrics: ").partition(": ")[2].replace("/metrics", "/healthz")
        try:
            with urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310 - our own
                return answer.status
        except HTTPError as error:
            error.close()
            return error.code

    def looked(self) -> None:
        """Wait until it has looked twice from now on."""
        before = self.metrics().get("lumctl_watch_tick_duration_seconds_count", 0)
        until(lambda: self.metrics()["lumctl_watch_tick_duration_seconds_count"] >= before + 2)

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self._said.end()
        return code


@pytest.fixture
def watch(environment: dict[str, str]) -> Iterator[Callable[..., Watching]]:
    started: list[Watching] = []

    def start(*options: str, looks: bool = True, **more: str) -> Watching:
        started.append(Watching({**environment, **more}, *options))
        started[-1].hear("observing ")
        if looks:
            until(lambda: started[-1].health() == 200)
        return started[-1]

    yield start
    for daemon in started:
        if daemon.process.returncode is None:
            daemon.end(signal.SIGKILL)


class Receiver(ThreadingHTTPServer):
    """Keeps what is posted; answers with the next of ``answers``, then well; may hang until it is let go."""

    daemon_threads = True

    def __init__(self) -> None:
        self.got: list[dict[str, object]] = []
        self.tokens: set[str | None] = set()
        self.answers: list[int] = []
        self.attempts = 0
        self.open = threading.Event()
        self.open.set()
        super().__init__(("127.0.0.1", 0), _Post)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/SECRET-PATH"

    def news(self) -> list[tuple[object, object, object]]:
        return [(each["occasion"], each["component"], each["state_after"]) for each in self.got]


class _Post(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.attempts += 1
        self.server.tokens.add(self.headers["Authorization"])
        self.server.open.wait(PATIENCE_S)
        status = self.server.answers.pop(0) if self.server.answers else 204
        if status < 300:
            self.server.got.append(document)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.open.set()
    server.shutdown()
    thread.join()
    server.server_close()


def state(daemon: Watching, kind: str, component: str, word: str) -> bool:
    return daemon.metrics().get(f"lumctl_component_state id={component} kind={kind} state={word}") == 1


def test_a_fault_is_a_line_a_metric_a_message_and_what_check_says(watch, lumctl, receiver):
    daemon = watch(LUMCTL_WEBHOOK_URL=receiver.url, LUMCTL_WEBHOOK_TOKEN=TOKEN)
    assert lumctl("check").stdout.startswith("LUMCTL OK")
    lumctl("sim", "fault", GPU, "gpu-lost")
    daemon.hear(f"accelerator {GPU}", "-> failed")
    assert state(daemon, "accelerator", GPU, "failed")
    until(lambda: ("opened", GPU, "failed") in receiver.news())
    said = lumctl("check", "-v")
    assert said.returncode == 2
    assert GPU in said.stdout
    assert "read by the daemon" in said.stderr
    assert "read directly" in lumctl("check", "-v", "--fresh").stderr
    lumctl("sim", "clear")
    until(lambda: ("resolved", GPU, "ok") in receiver.news())
    assert receiver.tokens == {f"Bearer {TOKEN}"}
    assert daemon.end() == 0
    assert daemon.lines[-1] == "ended"
    assert not [line for line in daemon.lines if "SECRET" in line or TOKEN in line]
    assert "read directly: no daemon" in lumctl("check", "-v").stderr


def findings_at(daemon: Watching, component: str) -> dict[str, float]:
    """Since when something is found at a component."""
    found = daemon.metrics().items()
    return {key: at for key, at in found if key.startswith("lumctl_finding_since") and f" id={component} " in key}


def test_a_killed_daemon_goes_on_where_it_was(watch, lumctl, receiver):
    daemon = watch(LUMCTL_WEBHOOK_URL=receiver.url)
    lumctl("sim", "fault", HOST, "unreachable")
    until(lambda: [news for news in receiver.news() if news[1] == HOST])
    daemon.looked()
    since, told = findings_at(daemon, HOST), len(receiver.got)
    assert since
    daemon.end(signal.SIGKILL)
    again = watch(LUMCTL_WEBHOOK_URL=receiver.url)
    until(lambda: findings_at(again, HOST))
    again.looked()
    assert findings_at(again, HOST) == since
    assert len(receiver.got) == told
    assert not [line for line in again.lines if "->" in line]
    lumctl("sim", "clear")
    until(lambda: ("resolved", HOST, "ok") in receiver.news())
    assert len({each["id"] for each in receiver.got}) == len(receiver.got)


def test_a_daemon_that_starts_reports_no_change_before_the_first_answers(watch, lumctl, receiver, environment):
    watch().end()
    known = history(environment, f"{HOST}-gpu0")
    lumctl("sim", "fault", HOST, "slow-host", "--value", "2")
    daemon = watch(LUMCTL_WEBHOOK_URL=receiver.url)
    assert state(daemon, "accelerator", f"{HOST}-gpu0", "ok"), "its first metrics are those of a complete look"
    daemon.looked()
    assert not [line for line in daemon.lines if "->" in line]
    # A message that an earlier daemon sent as it ended may come again: nothing new is what counts.
    assert [news for news in receiver.news() if news[0] != "resolved"] == []
    assert history(environment, f"{HOST}-gpu0") == known


def test_a_daemon_that_starts_reports_a_lost_host_after_three_misses(watch, lumctl, receiver, environment):
    lumctl("sim", "fault", HOST, "unreachable")
    daemon = watch(LUMCTL_WEBHOOK_URL=receiver.url)
    until(lambda: ("opened", HOST, "failed") in receiver.news())
    said = [line for line in daemon.lines if line.startswith(f"host {HOST} ")]
    assert [line for line in said if "unknown" in line] == [], said
    assert "-> failed" in said[-1]
    assert history(environment, HOST)[-1] == "failed"


def test_a_daemon_that_starts_beside_a_fault_reports_it_once(watch, lumctl, receiver):
    daemon = watch(LUMCTL_WEBHOOK_URL=receiver.url)
    lumctl("sim", "fault", SECOND_GPU, "gpu-lost")
    until(lambda: ("opened", SECOND_GPU, "failed") in receiver.news())
    assert daemon.end() == 0
    lumctl("sim", "fault", SECOND_GPU.partition("-")[0], "slow-host", "--value", "2")
    again = watch(LUMCTL_WEBHOOK_URL=receiver.url)
    assert state(again, "accelerator", SECOND_GPU, "failed")
    again.looked()
    assert not [line for line in again.lines if "->" in line]
    assert [news[0] for news in receiver.news() if news[1] == SECOND_GPU] == ["opened"]


def test_a_second_daemon_is_refused_and_told_of_the_first(watch, environment):
    daemon = watch()
    second = Watching(environment)
    assert second.end(0) == 5
    assert f"(pid {daemon.process.pid})" in " ".join(second.lines)
    assert daemon.health() == 200
    assert daemon.end(signal.SIGINT) == 0
    assert watch().health() == 200


def test_a_full_disk_blinds_nobody_and_loses_no_history(watch, lumctl, environment):
    daemon = watch()
    daemon.looked()
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    lumctl("sim", "fault", THIRD_GPU, "row-remap-failed")
    daemon.hear(f"accelerator {THIRD_GPU}", "-> failed")
    daemon.hear("memory: ")
    lumctl("sim", "clear")
    daemon.hear(f"accelerator {THIRD_GPU} failed -> ok")
    until(lambda: daemon.metrics()["lumctl_watch_history_waiting"] >= 2)
    assert daemon.health() == 200
    assert "read by the daemon" in lumctl("check", "-v").stderr
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    until(lambda: daemon.metrics()["lumctl_watch_history_waiting"] == 0)
    daemon.hear("memory: ok again")
    assert daemon.metrics()["lumctl_watch_history_dropped_total"] == 0
    assert daemon.end() == 0
    assert history(environment, THIRD_GPU)[-2:] == ["failed", "ok"]


def history(environment: dict[str, str], component: str) -> list[str]:
    """What the store says of a component, oldest first."""
    script = (
        "import sys; from pathlib import Path; from lumctl.inventory.load import load_inventory;"
        "from lumctl.store import open_store;"
        "store = open_store(load_inventory(Path(sys.argv[1])), 'prototype', 'sim');"
        "print(*(row.after.value for row in store.health.transitions(sys.argv[2])))"
    )
    command = [sys.executable, "-c", script, environment["LUMCTL_INVENTORY"], component]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_lost_host_is_told_once_and_holds_up_nobody(watch, lumctl, receiver):
    daemon = watch(LUMCTL_WEBHOOK_URL=receiver.url)
    daemon.looked()
    lumctl("sim", "fault", HOST, "unreachable")
    until(lambda: [news for news in receiver.news() if news[1] == HOST])
    daemon.looked()
    assert daemon.health() == 200
    assert daemon.metrics()[f"lumctl_host_up host={HOST}"] == 0
    assert f"lumctl_accelerator_temperature_celsius id={HOST}-gpu0" not in daemon.metrics()
    assert state(daemon, "accelerator", GPU, "ok")
    lumctl("sim", "clear")
    until(lambda: daemon.metrics()[f"lumctl_host_up host={HOST}"] == 1)
    until(lambda: ("resolved", HOST, "ok") in receiver.news())
    assert [news[0] for news in receiver.news() if news[1] == HOST].count("opened") == 1


def test_a_receiver_that_hangs_and_fails_delays_no_look_and_is_told_in_the_end(watch, lumctl, receiver):
    receiver.open.clear()
    receiver.answers = [500, 503]
    daemon = watch(LUMCTL_WEBHOOK_URL=receiver.url)
    lumctl("sim", "fault", THIRD_GPU, "gpu-lost")
    until(lambda: receiver.attempts == 1)
    before = daemon.metrics()["lumctl_watch_tick_duration_seconds_count"]
    until(lambda: daemon.metrics()["lumctl_watch_tick_duration_seconds_count"] >= before + 5)
    assert receiver.got == []
    receiver.open.set()
    until(lambda: ("opened", THIRD_GPU, "failed") in receiver.news())
    until(lambda: daemon.metrics()["lumctl_watch_notifications_waiting"] == 0)
    assert daemon.metrics()["lumctl_watch_notifications_total outcome=retried"] == 2
    daemon.hear("notifications: 127.0.0.1 answered 500")
    daemon.hear("notifications: ok again")


def test_the_inventory_is_read_again_and_a_broken_one_is_not_used(watch, lumctl, environment):
    path = Path(environment["LUMCTL_INVENTORY"])
    text = path.read_text()
    daemon = watch()
    try:
        path.write_text("lumctl: 1\nracks: [\n")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.hear("inventory: the new version cannot be used, the old one stays in force")
        daemon.looked()
        assert daemon.health() == 200
    finally:
        path.write_text(text)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.hear("inventory: read again, unchanged")
    assert "read by the daemon" in lumctl("check", "-v").stderr


def test_a_stopped_daemon_costs_check_a_short_wait_only(watch, lumctl):
    daemon = watch()
    os.kill(daemon.process.pid, signal.SIGSTOP)
    try:
        said = lumctl("check", "-v")
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)
    assert said.returncode == 0
    assert "read directly: no daemon" in said.stderr


def test_who_reads_beside_the_daemon_leaves_its_store_whole(watch, lumctl, environment):
    daemon = watch()
    daemon.looked()
    (log,) = Path(environment["XDG_STATE_HOME"]).rglob("lumctl.db-wal")
    assert lumctl("check", "--fresh").returncode == 0
    assert log.exists()
    lumctl("sim", "fault", SECOND_GPU, "gpu-lost")
    daemon.hear(f"accelerator {SECOND_GPU}", "-> failed")
    assert lumctl("check", "--fresh").returncode == 2
    daemon.looked()
    assert daemon.end() == 0
    assert history(environment, SECOND_GPU)[-1] == "failed"
    assert not [line for line in daemon.lines if "memory" in line or "malformed" in line]


def test_what_cannot_be_had_is_one_line(environment):
    for options, word in (
        (["--listen", "nowhere"], "not an address to listen at"),
        (["--token-file", "/absent"], "cannot read"),
        (["--settle", "inf"], "--settle"),
        (["--remind", "1e9"], "--remind"),
        (["-o", "json"], "prints no data"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "lumctl", "watch", *options],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 2
        assert word in done.stderr
        assert "Traceback" not in done.stderr
