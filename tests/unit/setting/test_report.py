"""What `device list` and `device show` tell: each by its driver, beside the record, and of those that do not answer."""

from dataclasses import replace
from threading import Barrier, Event

import pytest

from lumctl.context.device_report import report
from lumctl.context.roll_call import call
from lumctl.devices.errors import DeviceUnreachableError, InconsistentError
from lumctl.errors import ExitCode, UsageError
from lumctl.health.states import State
from lumctl.inventory.components import find_component, managed

EVERYBODY = [
    "ocs",
    "shelf",
    *(f"bmc{n}" for n in range(1, 5)),
    *(f"h{n}-gpu0-a" for n in range(1, 5)),
    *(f"h{n}-gpu0-b" for n in range(1, 5)),
    *(f"h{n}/power" for n in range(1, 5)),
]


def test_everything_with_a_driver_of_its_own_is_called_and_found_by_its_name(rack):
    assert [each.id for each in managed(rack.inventory)] == EVERYBODY
    assert [find_component(rack.inventory, name) for name in EVERYBODY] == list(managed(rack.inventory))


def test_all_that_answer_are_ok_and_say_who_they_are(rack):
    answers = {each.id: each for each in call(rack.context)}
    assert {each.state for each in answers.values()} == {State.OK}
    assert (answers["ocs"].says, answers["h1/power"].says) == ("a switch", "a controller")
    assert answers["h1-gpu0-a"].says == "ACME"
    assert answers["shelf"].says == "8 of 8 transponders answer"
    assert answers["bmc2"].says == "1 of 1 hosts answer"
    assert answers["ocs"].capabilities == ("read-ports", "set-labels", "set-ports")
    assert answers["h1-gpu0-a"].address == "shelf.example:830/och-1-a"


@pytest.mark.parametrize(
    ("error", "code"),
    [(DeviceUnreachableError("gone"), ExitCode.UNREACHABLE), (InconsistentError("16 ports"), ExitCode.UNHEALTHY)],
)
def test_one_that_does_not_answer_is_failed_with_the_reason(rack, error, code):
    rack.world.breaks["identify"] = error
    answers = call(rack.context, lambda each: each.id == "ocs")
    assert [(each.state, each.problem, each.exit_code) for each in answers] == [(State.FAILED, error.message, code)]


def test_nobody_is_waited_for_long(rack):
    over = Event()
    real = rack.world.call
    rack.world.call = lambda name, act, *words: over.wait(60) if name == "identify" else real(name, act, *words)
    assert len(call(rack.context, lambda each: each.id.startswith("h"))) == 12  # Drivers are imported before time runs.
    try:
        answers = {each.id: each for each in call(rack.context, patience_s=2)}
    finally:
        over.set()
    assert (answers["ocs"].state, answers["ocs"].problem) == (State.UNKNOWN, "no answer within 2 s")
    assert (answers["bmc1"].state, answers["h1-gpu0-a"].state) == (State.UNKNOWN, State.OK)


def test_the_parts_of_a_chassis_are_asked_at_once(rack):
    everybody, real = Barrier(8, timeout=3), rack.world.call

    def call_together(name, act, *words):
        if name == "read_optics":
            everybody.wait()
        real(name, act, *words)

    rack.world.call = call_together
    made = report(rack.context, "shelf")
    assert {part.state for part in made.parts} == {State.OK}
    assert made.answer.says == "8 of 8 transponders answer"


@pytest.mark.parametrize("name", ["shelf", "h1-gpu0-a", "ocs", "ocs/port/3"])
def test_a_silence_is_shown_as_it_is_listed(rack, name):
    over = Event()
    rack.world.call = lambda *_: over.wait(5)
    try:
        made = report(rack.context, name, patience_s=0.2)
        listed = {each.id: each for each in call(rack.context, patience_s=0.2)}
    finally:
        over.set()
    expected = listed[name.partition("/")[0]]
    assert (made.answer.state, made.answer.problem) == (expected.state, expected.problem)
    assert (made.answer.state, made.answer.exit_code) == (State.UNKNOWN, ExitCode.UNREACHABLE)
    assert made.parts == [listed[part.id] for part in made.parts]


def test_a_switch_shows_its_ports_with_who_sits_there_and_agrees_with_the_record(rack):
    rack.world.ports[0] = replace(rack.world.ports[0], enabled=False, label="to h1")
    made = report(rack.context, "ocs")
    assert (made.read_back, made.differences, made.certain) == (True, [], True)
    assert made.record == "6 of our 8 ingress ports are connected, certain since fabric-0001"
    first, last = made.ports[0], made.ports[31]
    assert (first.side, first.lanes, first.joined, first.enabled, first.label) == (
        "in", ("h1-gpu0-a tx",), 21, False, "to h1")  # fmt: skip
    assert (last.side, last.lanes, last.joined) == ("out", (), None)
    assert made.ports[21].joined == 0


def test_what_differs_from_the_record_is_named(rack):
    rack.world.joins = {**rack.world.joins, 6: 22, 0: 30}
    made = report(rack.context, "ocs")
    assert [(d.component, d.record, d.device) for d in made.differences] == [
        ("ocs/port/0", "connected to port 21", "connected to port 30"),
        ("ocs/port/6", "connected to nothing", "connected to port 22"),
    ]
    one = report(rack.context, "ocs/port/6")
    assert [d.component for d in one.differences] == ["ocs/port/6"]
    assert [port.port for port in one.ports] == [6]
    assert report(rack.context, "ocs/port/1").differences == []


def test_a_port_in_use_names_the_circuit_and_one_that_is_not_ours_has_no_record(rack):
    assert [c.id for c in report(rack.context, "ocs/port/21").circuits] == ["finetune/2-0:ba"]
    foreign = report(rack.context, "ocs/port/9")
    assert (foreign.record, foreign.circuits, foreign.notes) == (None, [], [])


def test_one_that_does_not_answer_is_shown_by_its_record_and_not_asked_again(rack):
    rack.world.breaks["identify"] = DeviceUnreachableError("gone")
    made = report(rack.context, "ocs")
    assert (made.answer.state, made.answer.problem, made.read_back) == (State.FAILED, "gone", None)
    assert made.answer.exit_code == ExitCode.UNREACHABLE
    assert made.ports[0].joined == 21
    assert [call[0] for call in rack.world.calls] == ["identify"]


def test_what_cannot_be_read_is_a_note_and_the_rest_is_shown(rack):
    rack.world.breaks["read_ports"] = DeviceUnreachableError("gone")
    made = report(rack.context, "ocs")
    assert (made.notes, made.answer.state, made.ports[0].joined) == (["ports: gone"], State.OK, 21)


def test_a_transponder_shows_its_readings_with_units(rack):
    rack.world.frequency["h1-gpu0-a"], rack.world.dbm["h1-gpu0-a"] = 193_100_000, -1.5
    made = report(rack.context, "h1-gpu0-a")
    assert {(r.name, r.value, r.unit) for r in made.readings} == {
        ("transmit", True, ""),
        ("frequency_mhz", 193_100_000, "MHz"),
        ("target_power_dbm", -1.5, "dBm"),
    }
    assert [c.id for c in made.circuits] == ["finetune/2-0:ab", "finetune/2-0:ba"]


def test_a_machine_shows_its_power_and_what_runs_there(rack):
    rack.world.power["bmc1"] = None
    made = report(rack.context, "h1")
    assert made.component.id == "h1/power"
    assert made.notes == ["rank 0 of finetune runs on h1-gpu0"]
    assert [(r.name, r.value) for r in made.readings] == [("power", "between on and off")]
    assert report(rack.context, "h4/power").notes == ["no job runs on h4-gpu0"]


def test_a_chassis_and_a_controller_show_their_parts(rack):
    assert [part.id for part in report(rack.context, "bmc3").parts] == ["h3/power"]
    assert len(report(rack.context, "shelf").parts) == 8


def test_a_name_that_is_none_has_a_hint(rack):
    with pytest.raises(UsageError) as wrong:
        report(rack.context, "h1-gpu0-z")
    assert "did you mean h1-gpu0-" in wrong.value.hint
