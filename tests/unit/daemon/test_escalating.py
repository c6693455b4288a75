"""Whom a policy escalates to: a real HTTP server and a real program, named in the inventory."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue

import pytest

from lumctl.daemon.notifications.receivers import Receivers, receiver_lookup, require_reachable
from lumctl.daemon.process import ErrorLog
from lumctl.errors import UsageError
from lumctl.inventory.load import example, load_inventory

WAIT_S = 20
OVERDUE, FAILED, ASKED = "approval-overdue", "failed", "approval-wanted"


class Server(ThreadingHTTPServer):
    """Answers what ``answers`` says, at last with 200; ``taken`` is set once it has."""

    daemon_threads = True

    def __init__(self):
        self.answers, self.got, self.taken = [], [], threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.answers.pop(0) if self.server.answers else 200
        self.server.got.append((status, self.headers.get("Authorization"), json.loads(body)))
        self.send_response(status)
        self.end_headers()
        if status == 200:
            self.server.taken.set()

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def place(tmp_path: Path, server: Server) -> Path:
    """An inventory whose receivers are that server and a program that hands on what it reads."""
    (tmp_path / "oncall.url").write_text(f"http://127.0.0.1:{server.server_port}/oncall\n")
    (tmp_path / "oncall.token").write_text("t0ken\n")
    program = tmp_path / "page"
    program.write_text('#!/bin/sh\ncat >"$1"\n')
    program.chmod(0o700)
    heard = tmp_path / "heard"
    os.mkfifo(heard)
    path = tmp_path / "rack.yaml"
    path.write_text(
        f"{example('prototype').read_text()}\nreceivers:\n"
        "  - {name: oncall, webhook_file: oncall.url, token_file: oncall.token, timeout_s: 5}\n"
        f"  - {{name: pager, command: [./page, {heard}], timeout_s: 5, give_up_after_s: 60}}\n"
    )
    return path


@pytest.fixture
def made(place: Path):
    """Receivers of that inventory, beside a usual one; ``lines`` are the errors that were told."""
    inventory = load_inventory(place)
    usual: Queue[str] = Queue()
    lines: list[str] = []
    receivers = Receivers(
        {"notifications": lambda letter: usual.put(letter.document["occasion"])},
        lambda *_: None,
        ErrorLog(lines.append),
        target="sim",
        named=receiver_lookup(lambda: inventory),
    )
    receivers.lines, receivers.heard = lines, usual
    yield receivers
    receivers.close()


def tell(receivers: Receivers, occasion: str, hook: str | None) -> None:
    receivers.tell(occasion, "prototype: plan-1 still waits", {"rack": "prototype", "hook": hook, "plan": "plan-1"})


def test_the_server_that_the_policy_names_gets_it_and_is_tried_again(made, server):
    server.answers = [503]
    tell(made, ASKED, "oncall")  # no escalation: that is for the usual receivers alone
    tell(made, OVERDUE, "oncall")
    assert server.taken.wait(WAIT_S)
    assert [(status, token, told["occasion"]) for status, token, told in server.got] == [
        (503, "Bearer t0ken", OVERDUE),
        (200, "Bearer t0ken", OVERDUE),
    ]
    assert server.got[0][2]["autopilot"]["plan"] == "plan-1"
    assert server.got[0][2]["id"] == server.got[1][2]["id"]
    assert any(line.startswith("receiver oncall: 127.0.0.1 answered 503") for line in made.lines)


def test_the_program_that_the_policy_names_gets_it(made, place, server):
    tell(made, FAILED, "pager")
    assert json.loads((place.parent / "heard").read_text())["occasion"] == FAILED
    assert server.got == []


def test_where_the_policy_names_nobody_the_usual_ones_are_told(made, server):
    tell(made, OVERDUE, None)
    assert made.heard.get(timeout=WAIT_S) == OVERDUE
    assert (server.got, made.counts()["retried"], made.lines) == ([], 0, [])


def test_a_name_that_the_inventory_has_no_more_is_said(made):
    tell(made, OVERDUE, "gone")
    assert made.lines == ["receiver gone: a policy refers to it, but the inventory has no receiver of that name"]


@pytest.mark.parametrize(
    ("file", "told"), [("oncall.url", "cannot read"), ("oncall.token", "cannot read"), ("page", "program")]
)
def test_a_daemon_does_not_begin_with_a_receiver_that_could_not_be_told(place, file, told):
    require_reachable(load_inventory(place))
    (place.parent / file).unlink()
    with pytest.raises(UsageError, match=f"^receiver (oncall|pager): {told} .*{file}"):
        require_reachable(load_inventory(place))
