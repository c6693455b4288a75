"""One request at a gateway: what it may say, and what becomes of it."""

import json
import re
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.daemon.gateway.fencing import Fence, HighestLease
from lumctl.daemon.gateway.requests import CHECKS, RequestHandler, arguments
from lumctl.daemon.gateway.writes import FencedWrites, GatewayLog
from lumctl.devices.base import BaseMesh
from lumctl.devices.drivers import KINDS
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    StaleFenceError,
)
from lumctl.devices.gateway.wire import error_heard
from lumctl.devices.protocols import DriverContext
from lumctl.devices.recorded_calls import signatures
from lumctl.devices.recorded_values import encode
from lumctl.devices.types import Capability, JoinChange, PucChange, PucState, Receipt, Staged
from lumctl.errors import UsageError
from lumctl.inventory.load import example, load_inventory
from lumctl.sockets import Peer

BAR, CROSS = PucState.BAR, PucState.CROSS
STAGED = Staged((PucChange(0, BAR, CROSS),), "")
MESH = {"kind": "mesh", "id": "mesh", "component": ""}
COMMIT = {**MESH, "call": "commit", "arguments": {"staged": encode(STAGED)}, "fence": 1}
US = Peer(pid=7, uid=8)


class Mesh(BaseMesh):
    """Answers what a test has it answer."""

    api_version = 1
    capabilities = frozenset({Capability.READ_STATES})

    def __init__(self):
        super().__init__(DriverContext(device="mesh"))
        self.asked = []
        self.answers = lambda: Receipt(STAGED, revert_armed=False)

    def __getattribute__(self, name):
        if name not in {"commit", "stage", "identify", "confirm", "read_states"}:
            return super().__getattribute__(name)

        def call(**given):
            self.asked.append((name, given))
            return self.answers()

        return call


class Rack:
    def __init__(self, folder):
        self.inventory = load_inventory(example("prototype"))
        self.newest = 1
        self.mesh = Mesh()
        self.said = []
        self.log = GatewayLog(folder / "gateway.log", self.said.append)
        devices = SimpleNamespace(mesh=lambda _: self.mesh)
        newest, highest = lambda: self.newest, HighestLease(folder / "fence", self.said.append)
        self.fence = Fence("prototype", newest, lambda _: None, highest)
        writes = FencedWrites(self.fence, self.log, now=lambda: 5.0, say=self.said.append)
        self.desk = RequestHandler(self.inventory, "prototype", devices, self.fence, writes, say=self.said.append)
        self._path = folder / "gateway.log"

    def ask(self, request, peer=US):
        return json.loads(json.dumps(self.desk.answer(request, peer)))

    @property
    def logged(self):
        return [json.loads(line) for line in self._path.read_text().splitlines()]


@pytest.fixture
def rack(tmp_path):
    return Rack(tmp_path)


def test_a_write_is_sent_and_logged_with_its_number(rack):
    assert rack.ask(COMMIT) == {"answer": encode(Receipt(STAGED, revert_armed=False))}
    assert rack.mesh.asked == [("commit", {"staged": STAGED, "revert_after_s": None})]
    [line] = rack.logged
    assert line.pop("took") >= 0
    assert line == {
        "at": 5.0,
        "device": "mesh",
        "call": "commit",
        "fence": 1,
        "peer": {"pid": 7, "uid": 8},
        "outcome": "done",
    }


def test_a_stale_write_reaches_no_driver_and_is_logged_and_told(rack):
    rack.newest = 2
    answer = rack.ask(COMMIT)
    assert type(error_heard(answer["error"], wrote=True)) is StaleFenceError
    assert rack.mesh.asked == []
    assert [(line["fence"], line["outcome"]) for line in rack.logged] == [(1, "StaleFenceError")]
    assert (rack.log.sent, rack.log.refused) == (0, 1)
    assert rack.said[-1].startswith("refused: commit of mesh by process 7 (user 8): lease 1 of rack prototype was")


READ = {**MESH, "call": "read_states", "arguments": {}}


@pytest.mark.parametrize("request_", [COMMIT, READ], ids=["write", "read"])
def test_a_request_whose_asker_has_gone_is_not_begun(rack, request_):
    answer = rack.ask(request_, Peer(7, 8, waits=lambda: False))
    assert answer["error"]["message"] == "the client disconnected; nothing was sent"
    assert rack.mesh.asked == []


def test_after_a_look_under_a_newer_lease_an_older_one_writes_no_more_even_without_the_store(rack):
    rack.mesh.answers = dict
    rack.ask({**READ, "fence": 1})
    rack.newest = 2
    rack.ask({**READ, "fence": 2})
    rack.newest = None
    assert rack.ask(COMMIT)["error"]["kind"] == "StaleFenceError"
    assert [name for name, _ in rack.mesh.asked] == ["read_states", "read_states"]


@pytest.mark.parametrize("error", [OutcomeUnknownError, InconsistentError, DeviceUnreachableError])
def test_an_error_keeps_its_class_and_what_it_says(rack, error):
    def fails():
        raise error("as it is", hint="do this")

    rack.mesh.answers = fails
    heard = error_heard(rack.ask(COMMIT)["error"], wrote=True)
    assert (type(heard), heard.message, heard.hint) == (error, "as it is", "do this")
    assert rack.logged[0]["outcome"] == error.__name__


def test_a_mistake_in_a_driver_leaves_a_write_unknown_and_a_read_failed(rack):
    def fails():
        raise ZeroDivisionError("oh")

    rack.mesh.answers = fails
    wrote = error_heard(rack.ask(COMMIT)["error"], wrote=True)
    assert type(wrote) is OutcomeUnknownError
    assert "ZeroDivisionError: oh" in wrote.message
    read = rack.ask({**MESH, "call": "identify", "arguments": {}})
    assert not isinstance(error_heard(read["error"], wrote=False), OutcomeUnknownError)
    assert rack.said == ["commit of mesh: ZeroDivisionError: oh", "identify of mesh: ZeroDivisionError: oh"]


def test_a_device_has_one_request_at_a_time(rack):
    inside, goes_on = threading.Event(), threading.Event()

    def slow():
        inside.set()
        assert goes_on.wait(10)
        return "mesh"

    rack.mesh.answers = slow
    request = {**MESH, "call": "identify", "arguments": {}}
    threads = [threading.Thread(target=rack.ask, args=(request,)) for _ in range(2)]
    threads[0].start()
    assert inside.wait(10)
    threads[1].start()
    threads[1].join(0.05)
    assert len(rack.mesh.asked) == 1
    goes_on.set()
    for thread in threads:
        thread.join(10)
    assert len(rack.mesh.asked) == 2


def test_another_text_of_the_inventory_is_found_out(rack):
    answer = rack.ask({**MESH, "call": "describe", "written": "another one"})
    assert answer["error"]["message"].startswith("the gateway's inventory has a different mesh: 'smartlight ")


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({}, "its device"),
        ({**MESH, "kind": "toaster"}, "'toaster' is not a kind"),
        ({**MESH, "id": "nobody"}, "no mesh 'nobody'"),
        ({**MESH, "id": 5}, "its device"),
        ({**MESH, "component": "more"}, "no mesh mesh/more"),
        ({**MESH, "call": "close", "arguments": {}}, "a mesh has no call 'close'"),
        ({**MESH, "call": "__init__", "arguments": {}}, "a mesh has no call '__init__'"),
        ({**MESH, "call": "commit", "arguments": []}, "not an object"),
        ({**MESH, "call": "commit", "arguments": {}}, "missing a required argument: 'staged'"),
        ({**MESH, "call": "identify", "arguments": {"self": 1}}, "got an unexpected|multiple values"),
        ({**COMMIT, "arguments": {"staged": 5}}, "staged of commit"),
        ({**COMMIT, "arguments": {"staged": {"Staged": {}}}}, "Staged"),
        ({**COMMIT, "arguments": {"staged": encode(Staged((JoinChange(1, 2, 3),), ""))}}, "staged of commit"),
        ({**COMMIT, "arguments": {"staged": encode(STAGED), "revert_after_s": "1"}}, "revert_after_s of commit"),
        ({**COMMIT, "fence": "1"}, "a lease number must be a whole"),
        ({**READ, "fence": "1"}, "a lease number must be a whole"),
        ({**COMMIT, "fence": True}, "a lease number must be a whole"),
    ],
)
def test_nonsense_is_refused_and_reaches_no_driver(rack, request_, says):
    error = error_heard(rack.ask(request_)["error"], wrote=True)
    assert isinstance(error, UsageError | DeviceRefusedError)
    assert re.search(says, error.message)
    assert rack.mesh.asked == []


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["map", "float", "Staged", "Receipt", "PucChange", "PucState", "changes", "token", "puc"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(value=_VALUES, call=st.sampled_from(sorted(signatures("mesh"))), name=st.sampled_from(sorted(CHECKS)))
def test_whatever_is_said_is_an_argument_of_its_type_or_refused(value, call, name):
    try:
        found = arguments("mesh", call, {name: value})
    except ValueError:
        return
    assert all(CHECKS[key](given) for key, given in found.items())


def test_every_argument_of_every_call_is_checked():
    named = {name for kind in KINDS for each in signatures(kind).values() for name in each.parameters if name != "self"}
    assert named == set(CHECKS)


def test_a_log_that_has_grown_begins_anew_and_keeps_the_one_before(tmp_path):
    log = GatewayLog(tmp_path / "log", pytest.fail, max_bytes=40)
    for number in range(5):
        log.add({"number": number, "text": "x" * 10}, refused=False)
    assert '"number": 4' in (tmp_path / "log").read_text()
    assert '"number": 3' in (tmp_path / "log.1").read_text()


def test_a_log_that_cannot_be_written_is_told_once(tmp_path):
    said = []
    log = GatewayLog(tmp_path / "gone" / "log", said.append)
    log.add({}, refused=False)
    log.add({}, refused=True)
    assert len(said) == 1
    assert (log.sent, log.refused) == (1, 1)
