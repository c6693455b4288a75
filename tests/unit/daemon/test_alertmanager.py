"""Notifications to a real Alertmanager: an alert for each case, until it is over or somebody knows of it."""

import json
import socket
import subprocess
import time
from contextlib import suppress
from urllib.request import urlopen

import pytest

from lumctl.daemon.notifications.http_receivers import Alertmanager, DeliveryError, alertmanager_at
from lumctl.daemon.notifications.ledger import NotificationFile, NotificationLedger
from lumctl.daemon.notifications.message import autopilot_message, case_message
from lumctl.daemon.process import ErrorLog
from lumctl.errors import UsageError
from lumctl.health.states import State

GPU = "s1-gpu0"
STARTS_WITHIN_S = 60.0


class Server:
    """Alertmanager itself; it forgets all when it is started anew."""

    def __init__(self, program, folder):
        self._program, self._folder = program, folder
        (folder / "config.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        self.process = subprocess.Popen(
            [
                self._program,
                "--config.file=config.yml",
                "--storage.path=kept",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--cluster.listen-address=",
            ],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + STARTS_WITHIN_S
        while time.monotonic() < end:
            with suppress(OSError), urlopen(f"{self.url}/-/ready", timeout=5):  # noqa: S310 - our own
                return
            time.sleep(0.05)
        raise TimeoutError("Alertmanager has not started")

    def stop(self):
        self.process.kill()
        self.process.wait()

    def alerts(self):
        """What is wrong, as it would call people: severity, name of the component and summary."""
        with urlopen(f"{self.url}/api/v2/alerts?active=true", timeout=10) as answer:  # noqa: S310 - our own
            found = json.load(answer)
        return sorted(
            (each["labels"]["severity"], each["labels"].get("component", ""), each["annotations"]["summary"])
            for each in found
        )


@pytest.fixture
def server(require_program, tmp_path):
    opened = Server(require_program("prometheus-alertmanager"), tmp_path)
    opened.start()
    yield opened
    opened.stop()


@pytest.fixture
def ledger(tmp_path):
    return NotificationLedger(NotificationFile(tmp_path / "watch.json"))


@pytest.fixture
def manager(server, ledger, said):
    return Alertmanager(
        alertmanager_at(f"{server.url}/", None), lambda: ledger.still_open("sim"), ErrorLog(said.append)
    )


@pytest.fixture
def look(seen, ledger, manager):
    """Look, and deliver what there is to tell."""

    def act():
        seen.now = time.time()
        for notification in ledger.review(seen.look()):
            manager.deliver(case_message(notification))

    return act


def test_a_case_is_an_alert_until_it_is_over(server, seen, look):
    seen.find(GPU)
    look()
    assert server.alerts() == [("critical", GPU, f"prototype (sim): failed: {GPU}: gpu.lost was seen")]
    seen.heal()
    look()
    assert server.alerts() == []


def test_a_case_that_gets_worse_is_one_alert(server, seen, look):
    seen.find(GPU, State.DEGRADED, "gpu.ecc")
    look()
    assert [each[:2] for each in server.alerts()] == [("warning", GPU)]
    seen.find(GPU, State.FAILED, "gpu.lost")
    look()
    assert [each[:2] for each in server.alerts()] == [("critical", GPU)]


def test_an_alertmanager_that_was_started_anew_is_told_again(server, seen, look, manager):
    seen.find(GPU)
    look()
    server.stop()
    with pytest.raises(DeliveryError):
        manager.post_open(time.time())
    server.start()
    assert server.alerts() == []
    manager.post_open(time.time())
    assert [each[:2] for each in server.alerts()] == [("critical", GPU)]


def test_what_is_acknowledged_calls_no_more_and_calls_again_when_that_is_over(server, seen, look, manager):
    seen.find(GPU)
    look()
    seen.heal()
    seen.find(GPU, acknowledged="by ops: ticket 17")
    look()
    manager.post_open(time.time())
    assert server.alerts() == []
    seen.heal()
    seen.find(GPU)
    look()
    manager.post_open(time.time())
    assert [each[:2] for each in server.alerts()] == [("critical", GPU)]


def test_what_the_autopilot_says_is_an_alert(server, manager):
    letter = autopilot_message("swapped", "s1-gpu0 was replaced", {"rack": "r1"}, target="sim", at=time.time())
    manager.deliver(letter)
    assert server.alerts() == [("warning", "", "s1-gpu0 was replaced")]


def test_a_url_that_is_none_is_refused():
    with pytest.raises(UsageError, match="the URL of --alertmanager is not an http"):
        alertmanager_at("am:9093", None)
