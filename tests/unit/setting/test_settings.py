"""Single settings: planned, applied, read back, undone, undone, and refused where a job would lose by it."""

from dataclasses import replace

import pytest

from lumctl.change.plan import Do, from_document, to_document
from lumctl.context.health_memory import moving
from lumctl.devices.contained_driver import class_of
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.errors import HalfDoneError, RefusedError, RolledBackError, UsageError

SPARE = "h4-gpu0-a"


@pytest.mark.parametrize(
    ("component", "word", "act", "before"),
    [
        ("ocs/port/9", "enabled=false", ("set_port", 9, False), ("set_port", 9, True)),
        ("ocs/port/9", "label=row 3, left", ("set_label", 9, "row 3, left"), ("set_label", 9, "")),
        (SPARE, "transmit=off", ("set_transmit", SPARE, False), ("set_transmit", SPARE, True)),
        ("shelf/och-4-a", "transmit=off", ("set_transmit", SPARE, False), ("set_transmit", SPARE, True)),
        ("h4", "power=off", ("set_power", "bmc4", False, False), ("set_power", "bmc4", True, False)),
        ("h4/power", "power=force-off", ("set_power", "bmc4", False, True), ("set_power", "bmc4", True, False)),
        ("bmc4", "power=off", ("set_power", "bmc4", False, False), ("set_power", "bmc4", True, False)),
    ],
)
def test_what_is_set_is_told_journalled_and_taken_back(rack, component, word, act, before):
    result = rack.set(component, word)
    assert rack.acts() == [act]
    run = rack.store.runs.get(result.run)
    assert (run.kind, run.state, [step.do for step in result.plan.steps]) == ("set", "done", [Do.SET])
    back = rack.take_back(result.run)
    assert rack.acts() == [act, before]
    assert rack.store.runs.get(result.run).undone_by == back.run


@pytest.mark.parametrize(
    ("word", "act"),
    [
        ("frequency_mhz=193100000", ("set_channel", SPARE, 193_100_000)),
        ("output_power_dbm=-3.5", ("set_output_power", SPARE, -3.5)),
    ],
)
def test_a_transmitter_is_tuned_and_put_back_where_it_told_what_it_was(rack, word, act):
    rack.world.frequency[SPARE], rack.world.dbm[SPARE] = 196_000_000, 0.0
    run = rack.set(SPARE, word).run
    assert rack.acts() == [act]
    rack.take_back(run)
    assert (rack.world.frequency[SPARE], rack.world.dbm[SPARE]) == (196_000_000, 0.0)


def test_what_was_never_told_cannot_be_taken_back_and_that_is_said_before(rack):
    plan = rack.plan(SPARE, "frequency_mhz=193100000")
    assert "cannot be undone" in plan.warnings[0]
    assert plan.steps[0].undo == "none"
    run = rack.apply(plan).run
    with pytest.raises(RefusedError, match="the earlier frequency_mhz of h4-gpu0-a is unknown"):
        rack.take_back(run)


def test_several_settings_are_set_in_the_order_they_are_typed(rack):
    result = rack.set(SPARE, "transmit=off", "output_power_dbm=1", "frequency_mhz=193100000")
    assert [call[0] for call in rack.acts()] == ["set_transmit", "set_output_power", "set_channel"]
    assert result.plan.steps[0].title == "set h4-gpu0-a transmit=off (it shows on)"


def test_a_value_that_the_device_rounds_is_the_same_value(rack):
    rack.set(SPARE, "output_power_dbm=1.04")
    assert rack.plan(SPARE, "output_power_dbm=1.02").steps == ()


def test_what_is_so_already_is_not_set_again(rack):
    plan = rack.plan("ocs/port/9", "enabled=true", "label=")
    assert (plan.steps, len(plan.warnings)) == ((), 2)
    assert rack.acts() == []


def test_a_plan_is_stale_when_the_component_shows_something_else_by_then(rack):
    plan = rack.plan("ocs/port/9", "label=mine")
    rack.world.ports[9] = replace(rack.world.ports[9], label="theirs")
    with pytest.raises(RefusedError, match="ocs/port/9 reports label=theirs, not label= as it did when it was made"):
        rack.apply(plan)
    assert rack.acts() == []


def test_a_later_change_must_be_taken_back_first(rack):
    first = rack.set("ocs/port/9", "label=one").run
    rack.set("ocs/port/9", "label=two")
    with pytest.raises(RefusedError, match="a later run has changed that"):
        rack.take_back(first)


def test_a_plan_survives_being_written_down(rack):
    plan = rack.plan(SPARE, "transmit=off", "output_power_dbm=-0.5")
    assert from_document(to_document(plan)) == plan


# -- what goes wrong while it is set -------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [DeviceRefusedError("no"), DeviceUnreachableError("gone")])
def test_what_was_surely_not_sent_is_refused_and_nothing_is_undone(rack, error):
    plan = rack.plan("ocs/port/9", "enabled=false")
    rack.world.breaks["set_port"] = error
    with pytest.raises(type(error)):
        rack.apply(plan)
    assert len(rack.acts()) == 1
    assert rack.store.runs.all()[0].state == "refused"


def test_a_component_that_cannot_be_read_back_is_put_back(rack):
    """Unreachable after the write is not unreachable before it."""
    plan = rack.plan("ocs/port/9", "enabled=false")

    def gone():
        rack.world.breaks["read_ports"] = DeviceUnreachableError("gone")

    real = rack.world.call
    rack.world.call = lambda name, act, *w: (real(name, act, *w), gone() if w == (9, False) else None)
    with pytest.raises(RolledBackError, match="accepted enabled=false, but cannot be read back: gone"):
        rack.apply(plan)
    assert rack.acts() == [("set_port", 9, False), ("set_port", 9, True)]
    assert rack.world.ports[9].enabled is True


def test_an_unknown_outcome_is_undone(rack):
    rack.world.breaks["after:set_transmit"] = OutcomeUnknownError("no answer came")
    with pytest.raises(RolledBackError, match="no answer came"):
        rack.set(SPARE, "transmit=off")
    assert rack.world.transmit[SPARE] is True


def test_a_failure_of_the_second_takes_the_first_back(rack):
    rack.world.breaks["set_channel"] = InconsistentError("it shows another channel")
    rack.world.frequency[SPARE] = 196_000_000
    with pytest.raises(RolledBackError):
        rack.set(SPARE, "transmit=off", "frequency_mhz=193100000")
    assert rack.world.transmit[SPARE] is True


def test_a_machine_that_does_not_follow_is_told_to_stay_on(rack, monkeypatch):
    plan = rack.plan("h4", "power=off")
    rack.world.follows = False
    monkeypatch.setattr("lumctl.change.settings.POWER", (replace_follows(0.05),))
    with pytest.raises(RolledBackError, match="accepted power=off, but reports on after 0 s"):
        rack.apply(plan)
    assert rack.acts() == [("set_power", "bmc4", False, False), ("set_power", "bmc4", True, False)]


def replace_follows(seconds):
    from lumctl.change import settings

    (power,) = settings.POWER
    return replace(power, follows_s=dict.fromkeys(power.follows_s, seconds))


def test_a_reset_has_no_way_back(rack):
    plan = rack.plan("h4", "power=reset")
    assert plan.warnings == ("power=reset cannot be undone",)
    run = rack.apply(plan).run
    assert rack.acts() == [("reset", "bmc4")]
    with pytest.raises(RefusedError, match="power=reset cannot be undone"):
        rack.take_back(run)


def test_a_reset_of_unknown_outcome_is_left_half_done(rack):
    rack.world.breaks["after:reset"] = OutcomeUnknownError("no answer came")
    with pytest.raises(HalfDoneError, match="power=reset cannot be undone"):
        rack.set("h4", "power=reset")


def test_a_machine_that_is_off_or_between_is_not_reset(rack):
    rack.world.power["bmc4"] = False
    with pytest.raises(RefusedError, match="nothing to reset"):
        rack.plan("h4", "power=reset")
    rack.world.power["bmc4"] = None
    with pytest.raises(RefusedError, match="neither on nor off"):
        rack.plan("h4", "power=off")


# -- what belongs to a job -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("component", "word", "says", "names"),
    [
        ("ocs/port/0", "enabled=false", "circuit finetune/2-0:ba of finetune", {"finetune/2-0:ba"}),
        ("ocs/port/21", "enabled=false", "circuit finetune/2-0:ba of finetune", {"finetune/2-0:ba"}),
        ("h1-gpu0-a", "transmit=off", "circuit finetune/2-0:ba of finetune", {"finetune/2-0:ba"}),
        ("h1-gpu0-a", "frequency_mhz=193100000", "circuit finetune/2-0:ba", {"finetune/2-0:ba"}),
        ("h1-gpu0-a", "output_power_dbm=-3", "circuit finetune/2-0:ba", {"finetune/2-0:ba"}),
        ("h1", "power=off", "rank 0 of finetune runs on h1-gpu0", {"finetune", "finetune/0-1:ab", "finetune/2-0:ba"}),
        ("h1", "power=force-off", "rank 0 of finetune", {"finetune"}),
        ("h1", "power=reset", "rank 0 of finetune", {"finetune"}),
    ],
)
def test_what_a_job_would_lose_is_refused_by_name_unless_it_is_meant(rack, component, word, says, names):
    with pytest.raises(RefusedError, match=says) as refused:
        rack.plan(component, word)
    assert "--even-if-used" in refused.value.hint
    plan = rack.plan(component, word, even_if_used=True)
    assert names <= set(plan.steps[0].data["disturbs"])
    rack.apply(plan)
    assert len(rack.acts()) == 1
    told = moving([rack.store.runs.all()[0]])
    assert {component.removesuffix("/power"), *names} <= told


@pytest.mark.parametrize(
    ("component", "word"), [("ocs/port/0", "label=x"), ("h1", "power=on"), ("h1-gpu0-a", "transmit=on")]
)
def test_what_a_job_does_not_lose_by_is_set(rack, component, word):
    rack.world.power["bmc1"], rack.world.transmit["h1-gpu0-a"] = False, False
    rack.set(component, word)
    assert len(rack.acts()) == 1


def test_a_plan_that_does_not_name_whom_it_disturbs_is_refused_by_the_engine(rack):
    plan = rack.plan("h1-gpu0-a", "transmit=off", even_if_used=True)
    (step,) = plan.steps
    silent = replace(plan, steps=(replace(step, data={**step.data, "disturbs": []}),)).sealed()
    with pytest.raises(RefusedError, match="would disturb finetune/2-0:ba"):
        rack.apply(silent)
    assert rack.acts() == []


# -- joins ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("component", "word"), [("ocs/port/6", "joined=22"), ("ocs/port/22", "joined=6")])
def test_a_join_is_programmed_and_taken_back(rack, component, word):
    result = rack.set(component, word)
    assert rack.world.joins == {**JOINS, 6: 22}
    assert rack.context.known_cells("ocs")[6] == "22"
    assert [step.do for step in result.plan.steps] == [Do.CHECK, Do.PROGRAM, Do.VERIFY]
    assert len(result.plan.keep) == len(JOINS)
    rack.take_back(result.run)
    assert rack.world.joins == JOINS


JOINS = {0: 21, 1: 18, 2: 17, 3: 20, 4: 19, 5: 16}


@pytest.mark.parametrize(
    ("component", "word", "error", "says"),
    [
        ("ocs/port/0", "joined=none", RefusedError, "carries circuit finetune/2-0:ba"),
        ("ocs/port/21", "joined=none", RefusedError, "carries circuit finetune/2-0:ba"),
        ("ocs/port/6", "joined=21", RefusedError, "port 21 of ocs is connected to port 0"),
        ("ocs/port/9", "joined=30", RefusedError, "belongs to others"),
        ("ocs/port/6", "joined=7", UsageError, "light enters at both"),
        ("ocs/port/22", "joined=23", UsageError, "light leaves at both"),
        ("ocs/port/6", "joined=6", UsageError, "cannot be connected to itself"),
        ("ocs/port/6", "joined=32", UsageError, "no port 32"),
        ("ocs/port/6", "joined=here", UsageError, "expected the number of a port, or none"),
    ],
)
def test_a_join_that_cannot_be_is_refused(rack, component, word, error, says):
    with pytest.raises(error, match=says):
        rack.plan(component, word)
    assert rack.acts() == []


def test_a_join_on_a_switch_that_others_have_changed_is_refused(rack):
    rack.world.joins[6] = 23
    with pytest.raises(RefusedError, match="ocs differs from what was last written to it"):
        rack.plan("ocs/port/6", "joined=22")
    with pytest.raises(RefusedError, match="1 cells; the first is ocs/port/6"):
        rack.plan("ocs/port/7", "joined=none")


def test_a_join_that_others_have_changed_is_written_again_as_recorded(rack):
    rack.world.joins[6] = 23
    plan = rack.plan("ocs/port/6", "joined=none")
    assert "it is written again" in plan.warnings[0]
    rack.apply(plan)
    assert rack.world.joins == JOINS
    assert rack.plan("ocs/port/6", "joined=none").steps == ()


# -- wrong words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("component", "words", "says", "hint"),
    [
        ("ocs/port/99", ["enabled=true"], "ocs has no port '99'", "0 to 31"),
        ("ocs/port/-1", ["enabled=true"], "ocs has no port '-1'", "0 to 31"),
        ("ocs/puc/1", ["state=bar"], "ocs is a switch: it has no 'puc/1'", "ocs/port/N"),
        ("ocs", ["enabled=true"], "it has no settings", "ocs/port/0"),
        ("shelf", ["transmit=on"], "it has no settings", "h1-gpu0-a"),
        ("shelf/och-9-a", ["transmit=on"], "no transponder's module", "h1-gpu0-a"),
        ("h4-gpu0", ["transmit=on"], "an accelerator, not a device", "h4-gpu0-a"),
        ("h4-gpu0-c", ["transmit=on"], "no device or part of a", "h4-gpu0-"),
        ("osc/port/1", ["enabled=true"], "no device or part of a", "ocs/port/1"),
        ("h9/power", ["power=on"], "no device or part of a", "did you mean"),
        (SPARE, ["tramsit=on"], "no setting 'tramsit'", "transmit=on|off"),
        (SPARE, ["transmit"], "'transmit' is not of the form SETTING=VALUE", "transmit=on|off"),
        (SPARE, ["=on"], "not of the form SETTING=VALUE", None),
        (SPARE, ["transmit=on", "transmit=off"], "transmit is given twice", None),
        (SPARE, ["transmit=maybe"], "expected on or off", None),
        (SPARE, ["frequency_mhz=193.1THz"], "whole number of MHz", "that is 193100000"),
        (SPARE, ["frequency_mhz=193.1"], "whole number of MHz", "193.1 THz is 193100000"),
        (SPARE, ["frequency_mhz=193100"], "whole number of MHz", "193100 GHz is 193100000"),
        (SPARE, ["frequency_mhz=193100000.5"], "whole number of MHz", None),
        (SPARE, ["frequency_mhz=inf"], "whole number of MHz", None),
        (SPARE, ["frequency_mhz=many"], "whole number of MHz", "193100000"),
        (SPARE, ["output_power_dbm=-3dBm"], "number of dBm", "-3"),
        (SPARE, ["output_power_dbm=loud"], "number of dBm", "-3.5"),
        (SPARE, ["output_power_dbm=nan"], "-60 to 30 dBm", None),
        (SPARE, ["output_power_dbm=99"], "-60 to 30 dBm", None),
        ("ocs/port/9", ["label=" + "x" * 129], "at most 128", None),
        ("ocs/port/9", ["label=a\nb"], "printable", None),
        ("ocs/port/9", ["transmit=on"], "a port of a switch: it has no setting 'transmit'", "enabled="),
        ("h4", ["power=reboot"], "expected on, off, force-off or reset", None),
    ],
)
def test_wrong_words_are_told_before_any_device_is_asked(rack, component, words, says, hint):
    with pytest.raises(UsageError) as wrong:
        rack.plan(component, *words)
    assert says in wrong.value.message
    assert hint is None or hint in wrong.value.hint
    assert rack.world.calls == []


def test_what_the_driver_cannot_set_is_said_with_what_it_can(rack):
    rack.plan(SPARE, "transmit=off")  # opens the driver
    driver = rack.context.devices.transponder(SPARE)
    driver.capabilities = driver.capabilities - {"set-channel"}
    with pytest.raises(UnsupportedError, match="cannot do frequency_mhz=193100000") as refused:
        rack.plan(SPARE, "frequency_mhz=193100000")
    assert refused.value.hint == "it supports: transmit, output_power_dbm"


def test_the_words_for_a_port_name_what_every_switch_can(rack):
    rack.plan("ocs/port/9", "enabled=false")  # opens the driver
    driver = class_of(rack.context.devices.switch("ocs"))
    driver.capabilities = driver.capabilities - {"set-labels"}
    with pytest.raises(UnsupportedError, match="cannot do label=spare") as refused:
        rack.plan("ocs/port/9", "label=spare")
    assert refused.value.hint == "it supports: joined, enabled"
