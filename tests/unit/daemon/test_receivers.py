"""Receivers beside one another: a webhook and a program, each at its own pace."""

import json
import threading
from queue import Queue

import pytest

from lumctl.daemon.notifications.http_receivers import DeliveryError
from lumctl.daemon.notifications.message import Case, CaseOccasion, Notification, autopilot_message, case_message
from lumctl.daemon.notifications.receivers import NamedReceiver, Receivers, parse_command, run
from lumctl.daemon.process import ErrorLog
from lumctl.errors import UsageError
from lumctl.health.states import State

WAIT_S = 20


def case(evidence="the driver has lost it"):
    found = Case("gpu0:xid", "gpu0", "xid", State.FAILED, 1.0, (), evidence, (), silent=False)
    return Notification(CaseOccasion.OPENED, found, State.OK, State.FAILED, 2.0, 2.0, "sim", "r1")


@pytest.fixture
def hook(tmp_path):
    """Make a program; what it is given lands in ``heard``."""

    def make(code):
        path = tmp_path / "notify"
        path.write_text(f"#!/bin/sh\n{code}\n")
        path.chmod(0o700)
        return (str(path), str(tmp_path / "heard"))

    return make


def test_a_program_gets_the_document_and_its_main_fields(hook, tmp_path):
    command = hook('cat >"$1"; echo "$LUMCTL_OCCASION $LUMCTL_RACK $LUMCTL_STATE_AFTER $LUMCTL_COMPONENT" >>"$1"')
    run(command, case_message(case("a\0b")))
    document, fields = (tmp_path / "heard").read_text().split("}o")
    assert json.loads(document + "}")["incident"] == "gpu0:xid"
    assert fields.strip() == "pened r1 failed gpu0"


def test_what_is_told_holds_nothing_that_a_terminal_obeys():
    told = case_message(case("lost \x1b]52;c;aGk=\x07\u202e\r")).document
    assert told["text"] == "r1 (sim): failed: lost \\x1b]52;c;aGk=\\x07\\u202e\\r"
    assert told["text"].endswith(told["summary"])
    assert autopilot_message("opened", "\x9b2J", {"why": ["\x7f"]}, target="sim", at=1.0).document["autopilot"] == {
        "why": ["\\x7f"]
    }


@pytest.mark.parametrize(
    ("code", "said", "again"),
    [
        ("echo busy; exit 75", "notify ended with 75: busy", True),
        ("exit 65", "notify ended with 65", False),
        ("kill -9 $$", "notify ended with -9", True),
    ],
)
def test_a_program_that_does_not_take_it(hook, code, said, again):
    with pytest.raises(DeliveryError) as failed:
        run(hook(code), case_message(case()))
    assert (failed.value.message, failed.value.again) == (said, again)


def test_a_program_that_takes_too_long(hook):
    with pytest.raises(DeliveryError, match=r"^notify was still running after 0.2 s and was ended$") as failed:
        run(hook("sleep 300"), case_message(case()), timeout_s=0.2)
    assert failed.value.again


def test_a_program_that_has_gone(hook):
    command = hook("exit 0")
    with pytest.raises(DeliveryError, match="cannot be run") as failed:
        run((f"{command[0]}-gone",), case_message(case()))
    assert failed.value.again


@pytest.mark.parametrize("text", ["", "'", "notify", "/nowhere/notify --all"])
def test_a_command_line_that_is_none(text):
    with pytest.raises(UsageError):
        parse_command(text)


def test_a_command_line_is_parted_as_a_shell_does():
    assert parse_command("/bin/sh -c 'exit $0' $HOME") == ("/bin/sh", "-c", "exit $0", "$HOME")


class Both:
    """Two receivers; ``slow`` waits until it is let go, and then refuses if told to."""

    def __init__(self):
        self.let_go, self.quick_has, self.all_done = threading.Event(), threading.Event(), threading.Event()
        self.refuses = False
        self.got, self.told = [], []
        receivers = {"notifications": self.slow, "command": self.quick}
        self.receivers = Receivers(receivers, self.done, ErrorLog([].append), target="sim", now=lambda: 5.0)

    def slow(self, letter):
        assert self.let_go.wait(WAIT_S)
        if self.refuses:
            raise DeliveryError("no", again=False)
        self.got.append(("slow", letter.id))

    def quick(self, letter):
        self.got.append(("quick", letter.id))
        self.quick_has.set()

    def done(self, notification, taken):
        self.told.append((notification.id, taken))
        self.all_done.set()


@pytest.fixture
def both():
    made = Both()
    yield made
    made.let_go.set()
    made.receivers.close()


def test_one_that_does_not_answer_delays_no_other(both):
    both.receivers.put(case())
    assert both.quick_has.wait(WAIT_S)
    assert both.told == []
    assert both.receivers.waiting == 1
    both.let_go.set()
    assert both.all_done.wait(WAIT_S)
    assert both.told == [(case().id, True)]
    assert both.receivers.counts() == {"sent": 2, "retried": 0, "failed": 0, "dropped": 0}


def test_a_case_is_told_where_any_has_taken_it(both):
    both.refuses = True
    both.let_go.set()
    both.receivers.put(case())
    assert both.all_done.wait(WAIT_S)
    assert both.told == [(case().id, True)]


def test_what_the_autopilot_tells_is_about_no_case(both):
    both.let_go.set()
    both.receivers.tell("approval", "r1 (sim): plan-1 waits for approval", {"rack": "r1", "plan": "plan-1"})
    assert both.quick_has.wait(WAIT_S)
    both.receivers.put(case())
    assert both.all_done.wait(WAIT_S)
    assert [told for told, _ in both.told] == [case().id]


def test_the_document_of_the_autopilot():
    letter = autopilot_message("approval", "waits", {"rack": "r1", "plan": "p"}, target="sim", at=1.0)
    assert json.loads(letter.body) == {
        "schema": "lumctl/notification/v1",
        "id": "autopilot:r1:approval:1.000",
        "occasion": "approval",
        "text": "waits",
        "at": 1.0,
        "target": "sim",
        "rack": "r1",
        "autopilot": {"rack": "r1", "plan": "p"},
    }


def test_two_threads_that_escalate_to_one_at_once_share_its_outbox():
    met, got = threading.Barrier(2, timeout=WAIT_S), Queue()

    def named(_name):
        met.wait()  # both have seen that there is none yet
        return NamedReceiver(lambda letter: got.put((threading.current_thread(), letter.id)), 60.0)

    receivers = Receivers({}, lambda *_: None, ErrorLog([].append), now=lambda: 5.0, named=named)
    tellers = [
        threading.Thread(target=receivers.tell, args=("approval-overdue", "waits", {"rack": "r1", "hook": "pager"}))
        for _ in range(2)
    ]
    for teller in tellers:
        teller.start()
    for teller in tellers:
        teller.join(WAIT_S)
    (by, _), (again, _) = got.get(timeout=WAIT_S), got.get(timeout=WAIT_S)
    receivers.close()
    assert by is again
    assert not by.is_alive()
