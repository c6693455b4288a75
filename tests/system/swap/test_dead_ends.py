"""No refusal is a dead end: each is provoked on a simulated rack, and the command of its hint leads on.

A row says how the rack comes into the state, which command is refused there, and which command of the hint is followed.
``make test`` follows some of them, LUMCTL_CAMPAIGN=1 all. A new refusal needs a row, or a reason why it has none.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from console import Console, Said, consoles
from refusals import refusals

from lumctl.change import to_document
from lumctl.errors import ExitCode
from lumctl.swap import plan_rollback

CAMPAIGN = bool(os.environ.get("LUMCTL_CAMPAIGN"))
EVERY = 16
"""Which share of the rows is followed otherwise."""

State = dict[str, str]


# -- states ------------------------------------------------------------------------------------------------------------


def as_it_is(_c: Console) -> State:
    return {}


def swapped(c: Console) -> State:
    run = c.swapped("s1-gpu0")
    c.sim.clear()
    return {"run": run}


def swapped_while_dead(c: Console) -> State:
    return {"run": c.swapped("s1-gpu0")}


def swapped_then_rewritten(c: Console) -> State:
    return {**swapped(c), "fabric": c.do("fabric", "apply", "--rewrite")}


def swapped_then_set(c: Console) -> State:
    return {**swapped(c), "set": c.do("device", "set", f"mesh/puc/{_unused(c)}", "state=cross")}


def set_twice(c: Console) -> State:
    runs = [c.do("device", "set", f"mesh/puc/{_unused(c)}", "state=cross") for _ in range(2)]
    return {"run": runs[0], "later": runs[1]}


def swapped_back_and_set(c: Console) -> State:
    swapped(c)
    run = c.do("swap", "apply", c.plan("finetune", "--back"))
    c.do("device", "set", f"mesh/puc/{_unused(c)}", "state=cross")
    return {"run": run}


def swapped_and_back(c: Console) -> State:
    run = c.swapped("s1-gpu0")
    c.do("swap", "rollback", run)
    return {"run": run}


def swapped_again_after_a_rollback(c: Console) -> State:
    run = c.swapped("s1-gpu0")
    c.sim.clear()
    back = c.do("swap", "rollback", run)
    again = c.swapped("s1-gpu0")
    c.sim.clear()
    return {"run": back, "again": again, "set": c.do("device", "set", f"mesh/puc/{_unused(c)}", "state=cross")}


def swapped_again_and_one_run_undone(c: Console) -> State:
    state = swapped_again_after_a_rollback(c)
    c.do("swap", "rollback", state["set"])
    return state


def swapped_and_returned(c: Console) -> State:
    state = swapped(c)
    return {**state, "later": c.do("swap", "apply", c.plan("finetune", "--back"))}


def swapped_and_another_dead(c: Console) -> State:
    state = swapped(c)
    c.sim.inject("s0-gpu0", "gpu-lost")
    return state


def swapped_and_not_repaired(c: Console) -> State:
    return swapped_while_dead(c)


def planned(c: Console) -> State:
    c.sim.inject("s1-gpu0", "gpu-lost")
    return {"plan": c.plan("--failed", "s1-gpu0")}


def planned_and_applied(c: Console) -> State:
    state = planned(c)
    return {**state, "run": c.do("swap", "apply", state["plan"])}


def planned_healthy_then_set(c: Console) -> State:
    plan = c.plan("--failed", "s1-gpu0", "--even-if-healthy")
    c.do("device", "set", f"mesh/puc/{_unused(c)}", "state=cross")
    return {"plan": plan}


def planned_then_set(c: Console) -> State:
    state = planned(c)
    c.do("device", "set", f"mesh/puc/{_unused(c)}", "state=cross")
    return state


def planned_then_edited(c: Console) -> State:
    state = planned(c)
    _remark(c)
    return state


def planned_then_spare_dead(c: Console) -> State:
    state = planned(c)
    c.sim.inject("s3-gpu0", "gpu-lost")
    return state


def planned_then_spare_dark(c: Console) -> State:
    state = planned(c)
    c.sim.inject("s3-gpu0-a", "dark")
    return state


def tried_in_vain(c: Console) -> State:
    state = planned_then_spare_dark(c)
    assert c.say("swap", "apply", state["plan"], "--yes").code == ExitCode.ROLLED_BACK
    return {"run": _newest(c)}


def planned_then_mesh_breaks(c: Console) -> State:
    state = planned(c)
    c.sim.inject("mesh", "device-half")
    return state


def rejected(c: Console) -> State:
    state = planned(c)
    c("swap", "approve", state["plan"], "--reject")
    return state


def approved(c: Console) -> State:
    state = planned(c)
    as_ann(c)
    c("swap", "approve", state["plan"])
    c.user("ops")
    return state


def approved_by_whom_it_is_applied(c: Console) -> State:
    state = approved(c)
    as_ann(c)
    return state


def approved_long_ago(c: Console) -> State:
    state = approved(c)
    c.ahead_s = 700.0
    return state


def asked_long_ago(c: Console) -> State:
    state = planned(c)
    c.ahead_s = 700.0
    return state


def spare_and_rank_dead(c: Console) -> State:
    c.sim.inject("s1-gpu0", "gpu-lost")
    c.sim.inject("s3-gpu0", "gpu-lost")
    return {}


def at_work(c: Console, after: int = 4) -> State:
    state = planned(c)
    return {**state, "run": c.cut(state["plan"], after=after)}


def writing(c: Console) -> State:
    return at_work(c, after=3)


def cut(c: Console) -> State:
    state = at_work(c)
    c.later()
    return state


def cut_while_writing(c: Console) -> State:
    state = writing(c)
    c.later()
    return state


def cut_then_rewritten(c: Console) -> State:
    state = cut(c)
    c.do("fabric", "apply", "--rewrite")
    return state


def cut_then_edited(c: Console) -> State:
    state = cut(c)
    _remark(c)
    return state


def swapped_then_replugged(c: Console) -> State:
    state = swapped(c)
    _replug(c)
    return state


def cut_then_replugged(c: Console) -> State:
    state = cut(c)
    _replug(c)
    c.sim.inject("s1-gpu0", "gpu-lost")
    return state


def cut_while_rolling_back(c: Console) -> State:
    state = swapped(c)
    with c.context() as context:
        back = plan_rollback(context, context.store(c.rack).runs.get(state["run"]))
        context.store(c.rack).runs.save_plan(to_document(back))
    later = c.cut(back.id, after=4)
    c.later()
    return {**state, "later": later}


def swapped_then_job_shrunk(c: Console) -> State:
    state = {"run": c.swapped("s2-gpu0")}
    c.sim.clear()
    c.edit(("ranks: s[0-2]-gpu0", "ranks: s[0-1]-gpu0"))
    return state


def half_done(c: Console) -> State:
    state = planned_then_mesh_breaks(c)
    assert c.say("swap", "apply", state["plan"], "--yes").code == 7
    c.sim.clear("mesh")
    return {**state, "run": _newest(c)}


def half_rolled_back(c: Console) -> State:
    state = swapped(c)
    c.sim.inject("mesh", "device-half")
    assert c.say("swap", "rollback", state["run"], "--yes").code == 7
    c.sim.clear()
    return {"run": _newest(c)}


def dark(c: Console) -> State:
    c.fresh(dark=True)
    return {}


def dark_with_a_dead_lane(c: Console) -> State:
    c.fresh(dark=True)
    c.sim.inject("s1-gpu0-a", "dark")
    return {}


def dead(c: Console) -> State:
    c.sim.inject("s1-gpu0", "gpu-lost")
    return {}


def acknowledged(c: Console) -> State:
    c.sim.inject("s1-gpu0", "gpu-lost")
    c("health", "ack", "s1-gpu0", "--comment", "known")
    return {"run": "ack-0001"}


def in_maintenance(c: Console) -> State:
    c("health", "maintain", "s1", "--for", "1h", "--comment", "work")
    return {"run": "maintain-0001"}


def changed_behind_its_back(c: Console) -> State:
    state = planned(c)
    c.write("mesh", _unused(c))
    return state


def set_then_used(c: Console) -> State:
    """A spare's transmitter was off, was switched on, and a job uses it now."""
    c.do("device", "set", "s3-gpu0-a", "transmit=off")
    run = c.do("device", "set", "s3-gpu0-a", "transmit=on")
    c.swapped("s1-gpu0")
    return {"run": run}


def carried(c: Console) -> State:
    """A PUC that carries a circuit for which there is another way."""
    for puc, state in c.cells()["mesh"].items():
        other = "bar" if state.value == "x" else "cross"
        said = c.say("device", "set", f"mesh/puc/{puc}", f"state={other}", "--dry-run")
        if said.code == 5 and c.say("swap", "plan", "finetune", "--avoid", f"mesh/puc/{puc}", "--dry-run").code == 0:
            return {"puc": f"mesh/puc/{puc}", "state": other}
    raise AssertionError("no circuit has another way")


def without_another_way(c: Console) -> State:
    """A PUC round which a circuit finds no way, unless an accelerator at its end is replaced."""
    for puc in c.cells()["mesh"]:
        said = c.say("swap", "plan", "finetune", "--avoid", f"mesh/puc/{puc}", "--dry-run")
        for line in said.commands if "cannot be routed around" in said.message else ():
            if c.type(line, "--dry-run").code == 0:
                return {"puc": f"mesh/puc/{puc}", "instead": plain(line)}
    raise AssertionError("each circuit has another way, or none at all")


def joined(c: Console) -> State:
    c.do("device", "set", "ocs/port/6", "joined=22")
    return {}


def reset(c: Console) -> State:
    return {"run": c.do("device", "set", "h4/power", "power=reset")}


def switched_off(c: Console) -> State:
    c.do("device", "set", "h4/power", "power=off")
    return {}


def swapped_and_done_again(c: Console) -> State:
    state = swapped(c)
    c("runbook", "export", state["run"], "--as-template", "--out", str(c.folder / "again.yaml"), "--force")
    return state


# -- what makes them up ------------------------------------------------------------------------------------------------


def _unused(c: Console) -> int:
    """A PUC in bar that no circuit passes: to cross it changes none."""
    for puc, state in c.cells()["mesh"].items():
        words = ("device", "set", f"mesh/puc/{puc}", "state=cross", "--dry-run")
        if state.value != "x" and c.say(*words).code == 0:
            return puc
    raise AssertionError("every PUC carries light")


def _remark(c: Console) -> None:
    c.edit(("lumctl: 1", "# as built\nlumctl: 1"))


def _replug(c: Console) -> None:
    """Two fibres of s1 were swapped, and the inventory says so."""
    c.edit(("tx: [12, 5, 2, 7]", "tx: [12, 6, 2, 7]"), ("rx: [36, 6, 0, 34]", "rx: [36, 5, 0, 34]"))
    c.replug()


def _newest(c: Console) -> str:
    with c.store() as store:
        return max(store.runs.all(), key=lambda run: run.fence).id


# -- good states -------------------------------------------------------------------------------------------------------


def well(c: Console, _state: State) -> None:
    """Every circuit of a job is shown to stand, and no run is open."""
    c.sim.clear()
    assert c.dark() == []
    listed = c.say("swap", "list")
    assert "unfinished" not in listed.err, listed.err


def home(c: Console, state: State) -> None:
    well(c, state)
    assert c.ranks("finetune") == ["s0-gpu0", "s1-gpu0", "s2-gpu0"]


def replaced(c: Console, state: State) -> None:
    well(c, state)
    assert c.ranks("finetune") == ["s0-gpu0", "s3-gpu0", "s2-gpu0"]


def applied_by_ops(c: Console, state: State) -> None:
    """The plan was approved, and who did not approve it can apply it."""
    as_ops(c)
    c.do("swap", "apply", state["plan"])
    replaced(c, state)


def known(c: Console, state: State) -> None:
    """Nothing needs to be done: the command has shown how things are."""


def off(c: Console, _state: State) -> None:
    with c.context() as context:
        assert not context.devices.transponder("s1-gpu0-a").transmitting()


# -- rows --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A refusal: where it is made (a file below lumctl/, words of it), and the way on."""

    file: str
    says: str
    state: Callable[[Console], State]
    refused: str
    follow: tuple[str, ...]
    """The commands that the hint names, in the order in which they are followed, or an option that it has added."""
    good: Callable[[Console, State], None] = well
    code: int = 5
    rack: str = "prototype"
    repair: Callable[[Console], object] = lambda _c: None
    """What the hint has done first, beside the rack."""
    again: bool = False
    """Whether the refused command works then."""
    given: State = field(default_factory=dict)
    """What the operator puts for words in capitals."""

    def __str__(self) -> str:
        return f"{self.state.__name__}: {self.refused} -> {'; '.join(self.follow)}"


def as_ann(c: Console) -> None:
    c.user("ann")


def as_ops(c: Console) -> None:
    c.user("ops")


def heal(c: Console) -> None:
    c.sim.clear()


def wait(c: Console) -> None:
    c.later()


PLAN, RESUME, ABORT = "swap plan --failed s1-gpu0", "swap resume {run}", "swap abort {run}"
REWRITE = "fabric apply --rewrite"
BACK = "swap plan finetune --back"
PRE, RES, END = (f"change/{name}.py" for name in ("preconditions", "resumption", "run_end"))
LATER, GUARD = "change/run_history.py", "change/guard_scope.py"

ROWS = [
    Row(PRE, "right after it", swapped_then_rewritten, "swap rollback {run}", (BACK,), home),
    Row(PRE, "right after it", swapped_then_set, "swap rollback {run}", (BACK,), home),
    Row(PRE, "right after it", set_twice, "swap rollback {run}", ("swap rollback {later}", "swap rollback {run}"),
        home),
    Row(PRE, "right after it", swapped_back_and_set, "swap rollback {run}",
        ("swap plan --failed s1-gpu0 --spare s3-gpu0",), replaced),
    Row(PRE, "right after it", swapped_again_after_a_rollback, "swap rollback {run}",
        ("swap rollback {set}", "swap rollback {again}", "swap rollback {run}"), replaced),
    Row(PRE, "right after it", swapped_again_and_one_run_undone, "swap rollback {run}",
        ("swap rollback {again}", "swap rollback {run}"), replaced),
    Row(PRE, "right after it", swapped_and_returned, "swap rollback {run}", ("job show finetune",), home),
    Row(PRE, "right after it", cut_while_rolling_back, "swap rollback {run}", ("swap resume {later}",), home),
    Row(PRE, "was already applied by", planned_and_applied, "swap apply {plan}", ("swap show {run}",), replaced),
    Row(PRE, "was already applied by", planned_and_applied, "swap approve {plan}", ("swap show {run}",), replaced),
    Row(PRE, "is stale", planned_healthy_then_set, "swap apply {plan}", (PLAN + " --even-if-healthy",), replaced),
    Row(PRE, "is stale", planned_then_set, "swap apply {plan}", (PLAN,), replaced),
    Row(PRE, "was made from a different version", planned_then_edited, "swap apply {plan}", (PLAN,), replaced),
    Row(PRE, "was interrupted and is still open", cut, "swap apply {plan}", (RESUME,), replaced),
    Row(PRE, "was interrupted and is still open", cut, "swap apply {plan}", (ABORT,), home),
    Row(PRE, "is unknown: it was never programmed", dark, "swap plan --failed s1-gpu0 --even-if-healthy",
        ("fabric apply",), home, again=True),
    Row(PRE, "is changing it, or was interrupted within", writing, "swap plan --failed s1-gpu0", ("swap list",), known,
        repair=wait),
    Row(PRE, "is uncertain since", cut_while_writing, "swap plan --failed s1-gpu0", (RESUME,), replaced),
    Row(PRE, "is uncertain since", cut_while_writing, "swap plan --failed s1-gpu0", (ABORT,), home, again=True),
    Row(PRE, "differs from what was last written", changed_behind_its_back, "swap apply {plan}", (REWRITE,), home,
        rack="readable"),
    Row(RES, "a later run has changed", cut_then_rewritten, "swap resume {run}", ("swap abort {run} --leave-later",)),
    Row(RES, "a later run has changed", cut_then_rewritten, "swap abort {run}", ("swap abort {run} --leave-later",)),
    Row(RES, "was planned with a different version", cut_then_edited, "swap resume {run}", (ABORT,), home),
    Row(RES, "has nothing to", swapped, "swap abort {run}", ("swap rollback {run}",), home),
    Row(RES, "has nothing to", swapped, "swap resume {run}", ("swap rollback {run}",), home),
    Row(RES, "has nothing to", swapped_and_returned, "swap resume {run}", ("job show finetune",), home),
    Row(RES, "has nothing to", swapped_then_rewritten, "swap abort {run}", (BACK,), home),
    Row(RES, "has nothing to", swapped_and_back, "swap abort {run}", ("swap show {run}",), home),
    Row(RES, "has nothing to", as_it_is, "swap resume fabric-0001", ("swap show fabric-0001",), home),
    Row(RES, "is running: ", at_work, "swap resume {run}", (RESUME,), replaced, repair=wait),
    Row(RES, "is running: ", at_work, "swap abort {run}", (ABORT,), home, repair=wait),
    Row(LATER, "can neither continue nor be undone", swapped_then_replugged, "swap rollback {run}", (REWRITE,),
        replaced),
    Row(LATER, "can neither continue nor be undone", cut_then_replugged, "swap abort {run}",
        (REWRITE, "swap abort {run} --leave-later")),
    Row(LATER, "can neither continue nor be undone", cut_then_replugged, "swap resume {run}",
        (REWRITE, "swap abort {run} --leave-later")),
    Row("change/step_actions.py", "not ok", planned_then_spare_dead, "swap apply {plan}", (PLAN,), replaced,
        repair=lambda c: c.sim.clear("s3-gpu0")),
    Row("change/approval.py", "requires an approval of", planned, "swap apply {plan}", ("swap approve {plan}",),
        applied_by_ops, rack="approving", repair=as_ann),
    Row("change/approval.py", "cannot also apply it", approved_by_whom_it_is_applied, "swap apply {plan}",
        ("swap apply {plan}",), replaced, rack="approving", repair=as_ops),
    Row("store/approvals.py", "requires the approval of another user", planned, "swap approve {plan}",
        ("swap approve {plan}",), applied_by_ops, rack="approving", repair=as_ann),
    Row("change/approval.py", "was rejected", rejected, "swap apply {plan}", (PLAN,), known, rack="approving"),
    Row("change/approval.py", "has expired", approved_long_ago, "swap apply {plan}", (PLAN,), known, rack="approving"),
    Row("change/approval.py", "the deadline to approve", asked_long_ago, "swap apply {plan}", (PLAN,), known,
        rack="approving"),
    Row("store/approvals.py", "<_settled>", approved, "swap approve {plan}", ("swap apply {plan}",), replaced,
        rack="approving"),
    Row("store/approvals.py", "<_settled>", rejected, "swap approve {plan}", ("status",), known, rack="approving"),
    Row("store/approvals.py", "the deadline to approve", asked_long_ago, "swap approve {plan}", ("status",), known,
        rack="approving"),
    Row("change/disturbance.py", "would disturb", set_then_used, "swap rollback {run}",
        ("device set s3-gpu0-a transmit=off --even-if-used",), known),
    Row(END, "failed and was rolled back", planned_then_spare_dark, "swap apply {plan}", ("status", PLAN), replaced,
        code=6, repair=lambda c: c.sim.clear("s3-gpu0-a")),
    Row(END, "is left half done", planned_then_mesh_breaks, "swap apply {plan}", ("swap show swap-0001",
        "swap resume swap-0001"), replaced, code=7, repair=lambda c: c.sim.clear("mesh")),
    Row(END, "is left half done", planned_then_mesh_breaks, "swap apply {plan}", ("swap abort swap-0001",), home,
        code=7, repair=lambda c: c.sim.clear("mesh")),
    Row(END, "is left half done", dark_with_a_dead_lane, "fabric apply", ("swap resume fabric-0001",), home, code=7,
        repair=heal),
    Row("swap/request.py", "was read just now and is ok", as_it_is, PLAN, ("--even-if-healthy",), replaced),
    Row("swap/lane_moves.py", "nothing to reroute", as_it_is, "swap plan finetune --avoid s3-gpu0-a", ("fabric show",)),
    Row("swap/settings.py", "which this would break", carried, "device set {puc} state={state}",
        ("swap plan finetune --avoid {puc}",), again=True),
    Row("swap/settings.py", "is connected to port", joined, "device set ocs/port/7 joined=22",
        ("device set ocs/port/6 joined=none",), rack="switched", again=True),
    Row("swap/settings.py", "no lane of", as_it_is, "device set ocs/port/8 joined=30", ("device show ocs",),
        rack="switched"),
    Row("swap/explanations.py", "has no spare left", swapped_and_another_dead, "swap plan --failed s0-gpu0",
        (BACK, "swap plan --failed s0-gpu0")),
    Row("swap/explanations.py", "<message>", spare_and_rank_dead, PLAN, ("health explain s3-gpu0", PLAN), replaced,
        repair=lambda c: c.sim.clear("s3-gpu0")),
    Row("swap/lane_moves.py", "has no lane to spare", as_it_is, "swap plan finetune --avoid s1-gpu0-a",
        ("swap plan --failed s1-gpu0 --avoid s1-gpu0-a",), replaced),
    Row("swap/reroute.py", "cannot be routed around", without_another_way, "swap plan finetune --avoid {puc}",
        ("{instead}",)),
    Row("swap/restoration.py", "every rank of", as_it_is, BACK, ("job show finetune",), home),
    Row("swap/restoration.py", "can move back", swapped_while_dead, BACK, ("health explain s1-gpu0", BACK), home,
        repair=heal),
    Row(LATER, "is no longer in force", swapped_and_back, "swap rollback {run}", ("swap list",), home),
    Row(LATER, "changed nothing to roll back", tried_in_vain, "swap rollback {run}", (PLAN,), replaced,
        repair=lambda c: c.sim.clear("s3-gpu0-a")),
    Row("swap/rollback.py", "only recorded", acknowledged, "swap rollback {run}", ("health ack s1-gpu0 --clear",),
        home),
    Row("swap/rollback.py", "only recorded", in_maintenance, "swap rollback {run}", ("health maintain s1 --end",),
        home),
    Row("swap/rollback.py", "has not ended", half_rolled_back, "swap rollback {run}", (RESUME,), home),
    Row("swap/rollback.py", "earlier states were unknown", as_it_is, "swap rollback fabric-0001", ("fabric show",),
        home),
    Row("swap/rollback.py", "cannot be rolled back:", reset, "swap rollback {run}", ("device show h4/power",),
        rack="switched"),
    Row("swap/settings.py", "nothing to reset", switched_off, "device set h4/power power=reset",
        ("device set h4/power power=on",), rack="switched", again=True),
    Row("swap/settings.py", "is refused", as_it_is, "device set s1-gpu0-a transmit=off", ("--even-if-used",), off),
    Row("store/actions.py", "has no acknowledgement", as_it_is, "health ack s1-gpu0 --clear", ("health list",)),
    Row("store/actions.py", "is not in maintenance", as_it_is, "health maintain s1 --end", ("health list",)),
    Row("cli/health.py", "finds no fault in", dead, "health ack s1-gpu0 --rule gpu.ecc --comment known",
        ("health ack s1-gpu0 --comment",), given={"WHY": "known"}),
    Row("cli/health.py", "has no faults", as_it_is, "health ack s1-gpu0 --comment known",
        ("health explain s1-gpu0",)),
    Row("cli/health_clear.py", "has no error events", as_it_is, "health clear s1-gpu0 --reason repaired",
        ("health explain s1-gpu0",)),
    Row("cli/health_clear.py", "has no events of", dead,
        "health clear s1-gpu0 --rule gpu.recovery-action --reason repaired",
        ("health clear s1-gpu0 --reason",), known, given={"TEXT": "repaired"}),
    Row("cli/changes.py", "was made for target", planned, "swap apply {plan} --target rack", ("--target sim",),
        replaced),
    Row("cli/swap_approve.py", "no policy requires", planned, "swap approve {plan}", ("swap apply {plan}",), replaced),
    Row("runbook/replay.py", "starts from another state than", swapped, "runbook replay {run} --target sim --running",
        ("runbook export {run} --as-template",), replaced),
    Row("context/context.py", "no longer fits", swapped_then_job_shrunk, "status", ("fabric apply --as-written",),
        again=True),
]  # fmt: skip


# -- the walk ----------------------------------------------------------------------------------------------------------


def approving(text: str) -> str:
    """Every swap by hand needs an approval."""
    return text.replace(
        "lumctl: 1",
        "policies:\n  - name: dead-gpu\n    how: approve\n    rules: [gpu.lost]\n"
        "    approval: {by_hand: true, by_another: true, expires_s: 600}\nlumctl: 1",
    )


def readable(text: str) -> str:
    """The mesh can be read back."""
    return text.replace("driver: smartlight", "driver: sim-mesh")


@pytest.fixture(scope="module")
def console() -> Iterator[Callable[[str], Console]]:
    """The consoles of this module, each with a fresh rack."""
    edits = {"approving": approving, "readable": readable}
    with consoles() as open_console:
        opened: dict[str, Console] = {}

        def fresh(rack: str) -> Console:
            if rack not in opened:
                opened[rack] = open_console("switched" if rack == "switched" else "prototype", edits.get(rack, str))
            opened[rack].fresh()
            return opened[rack]

        yield fresh


@pytest.mark.parametrize("row", ROWS if CAMPAIGN else ROWS[::EVERY], ids=str)
def test_a_refusal_names_the_way_on(console, row) -> None:
    c = console(row.rack)
    state = row.state(c)
    refused = row.refused.format(**state)
    said = c.type(f"lumctl {refused}", **row.given)
    assert said.code == row.code, (said.code, said.out, said.err)
    made = [each for each in refusals() if any(each.made(origin) for origin in said.origins)]
    assert any(row.says in each.says for each in made), (row.says, made, said.message)
    row.repair(c)
    for wanted in row.follow:
        follow(c, said, wanted.format(**state), row)
    if row.again:
        done = c.type(f"lumctl {refused}", **row.given)
        assert done.code == 0, (done.message, done.hint)
    row.good(c, state)


def follow(c: Console, said: Said, wanted: str, row: Row) -> None:
    """Do what a hint says: a command, and the plan that it makes, or the refused command with an option added."""
    if wanted.startswith("--"):
        assert wanted in said.hint
        name = wanted.partition(" ")[0]
        words = said.words[: said.words.index(name)] if name in said.words else said.words
        done = c.type(" ".join(("lumctl", *words, *wanted.split())))
    else:
        bare = {line: plain(line) for line in said.commands}
        line = next((line for line, words in bare.items() if words.startswith(wanted)), None)
        assert line is not None, (wanted, said.message, said.hint)
        assert "--target sim" in line
        assert str(c.path) in line, "it acts on the same rack wherever it is typed"
        done = c.type(line, **row.given)
    assert done.code == 0 or (done.code == 4 and "status" in done.words), (done.words, done.message, done.hint)
    apply = next((line for line in done.err.splitlines() if line.startswith("apply it: ")), None)
    if apply is not None and row.rack != "approving":
        applied = c.type(apply.removeprefix("apply it: "))
        assert applied.code == 0, (applied.message, applied.hint)


def plain(line: str) -> str:
    """A command without the options that every command takes."""
    return re.sub(r" (?:-i|--target) \S+", "", line).removeprefix("lumctl ")


# -- refusals without a row --------------------------------------------------------------------------------------------

TWO_AT_ONCE = "two operators act in one moment, and the other one has done it: what it says is how it is"
AUTHOR = "for who edits a runbook; see test_an_author_of_a_runbook_is_told_what_to_write and tests/unit/runbook"
COPYING = "about two databases of a rack: see tests/unit/store/test_copying.py"
QUEUE = "the queue of demands: see tests/system/swap/test_queue.py and tests/unit/store/test_demands.py"
FILLERS = "about filler jobs and the cost of a return: see tests/system/swap/test_fillers.py"
FINAL = "what was asked for was a no, or is so already: nothing leads on from it"
JOBS = "about a job's processes: see tests/system/jobs"
LOST_RECORD = "its command is typed in test_lost_record.py and tests/unit/swap/test_adoption.py"
LEASE = "another engine is at work: see tests/system/survival"
BY_HAND = "about a rack with jobs without a hook, of which a simulator has none: see tests/unit/change/test_stopped.py"

ELSEWHERE = {
    (
        "change/approval.py",
        "was already applied, or is stale",
    ): "the autopilot has: see tests/system/test_autopilot.py",
    (END, "<said>"): LEASE,
    (END, "all light paths are as planned"): "a hook fails: see tests/unit/change/test_job_step.py",
    (END, "but the run could not be closed"): "the store is lost in that moment: see tests/system/survival",
    ("change/guard.py", "cannot start a revert guard"): "the machine has no processes or memory left",
    (GUARD, "the revert guard ended before the run began"): "see tests/system/survival/test_frozen.py",
    ("change/live_paths.py", "that belong to no job in the inventory"): "its command is typed in test_day_one.py",
    ("change/live_paths.py", "the store has no record of"): LOST_RECORD,
    (PRE, "adopted the placement of the jobs"): LOST_RECORD,
    ("change/resumption.py", "has just ended"): LEASE,
    ("swap/adoption.py", "the light does not show where"): LOST_RECORD,
    ("swap/adoption.py", "the light fits several placements of"): LOST_RECORD,
    ("swap/adoption.py", "the light contradicts the placement given for"): LOST_RECORD,
    ("swap/fabric.py", "the light shows rank"): LOST_RECORD,
    (
        "swap/request.py",
        "is not the faulty component: the cause is",
    ): "its command is typed in test_dead_transmitter.py",
    ("cli/collective.py", "and the lower bound is"): "it concerns no rack: see tests/unit/cli/test_collective.py",
    ("swap/silent_parts.py", "no swap can be applied while"): "its command is typed in test_status_advice.py",
    ("swap/failed_attempts.py", ""): "its command is typed in test_status_advice.py",
    ("runbook/replay.py", "only recorded what the light showed"): "there is nothing to be done: no hint",
    (PRE, "cannot be rolled back: the rollback"): AUTHOR,
    ("change/foreign_circuits.py", "without a proof that circuit"): AUTHOR,
    (PRE, "was made for target"): "as of cli/changes.py, for a plan in a file",
    (PRE, "would run in parallel"): AUTHOR,
    (PRE, "is for rack"): AUTHOR,
    (PRE, "and has no later confirm step for it"): AUTHOR,
    (PRE, "but does not give the states of the others"): AUTHOR,
    (PRE, "cannot be applied: it"): "a plan that lumctl did not make: see tests/unit/change/test_preconditions.py",
    (RES, "which circuits worked"): "no refusal for an operator: such a run is undone by swap resume, exit code 6",
    (RES, "was changed, but not by this run"): "no refusal for an operator: such a run is undone by swap resume",
    (RES, "has just ended"): TWO_AT_ONCE,
    (RES, "ran on target"): "stores of targets are apart: only a library finds a run of another target",
    (
        "change/step_actions.py",
        "{} cannot be undone",
    ): "a step's undo: in the message of a half-done run",
    ("change/step_actions.py", "could not be proved"): "what does not answer: see tests/unit/change/test_engine.py",
    ("change/step_actions.py", "the earlier {} of"): "a step's undo: in the message of a half-done run",
    ("change/disturbance.py", "<must_be_stopped>"): BY_HAND,
    ("change/foreign_circuits.py", "would reroute circuit"): AUTHOR,
    ("change/foreign_circuits.py", "but replaces nothing in that job"): AUTHOR,
    ("swap/request.py", "by now: the fault for which"): "an older plan: see tests/unit/swap/test_request.py",
    ("swap/light_paths.py", "its receiver needs"): "in the message of a plan for which no spare is found",
    ("swap/settings.py", "is stuck in"): "the hint edits the inventory",
    ("swap/explanations.py", "cannot be replaced together"): "several at once: see tests/unit/swap/test_joint.py",
    ("swap/explanations.py", "no routes were found to replace"): "several at once: see tests/unit/swap/test_joint.py",
    ("swap/suggestions.py", "no swap repairs"): "the hint names a repair by hand: see tests/unit/swap/test_request.py",
    ("swap/suggestions.py", "no route"): "its commands are typed in test_remedies.py",
    ("swap/suggestions.py", "<_as_it_stands>"): "its commands are typed in test_remedies.py",
    ("swap/choice.py", "<lossy>"): "in the message of a plan for which no spare is found",
    ("swap/fillers.py", ""): FILLERS,
    ("swap/restoration.py", "would stand still"): FILLERS,
    ("swap/circuit_change.py", "needs {} to connect port"): "in the message of a plan for which no spare is found",
    ("swap/rollback.py", "ran on target"): "stores of targets are apart: only a library finds a run of another target",
    ("swap/settings.py", "is neither on nor off now"): "the simulator's power controllers are never between the two",
    ("runbook/execution.py", "is for rack"): "see tests/system/test_runbook_commands.py",
    ("runbook/execution.py", "which is {}"): AUTHOR,
    ("runbook/execution.py", "in the rehearsal"): "nothing was done, and no rack is concerned",
    ("runbook/replay.py", "only recorded what was changed"): FINAL,
    ("daemon/process.py", "(pid {})"): "a second daemon: see tests/system/test_watch.py",
    ("daemon/autopilot/pilot.py", "the autopilot was stopped"): "for the log of the daemon: a person stopped it",
    (
        "daemon/autopilot/pilot.py",
        "differs from the stored plan of that id",
    ): "for the log of the daemon, which continues",
    ("daemon/autopilot/stop_switch.py", "cannot be removed"): "another user's file: see tests/system/test_autopilot.py",
    ("daemon/gateway/service.py", "a gateway drives its devices itself"): "a mistake in a program, none of an operator",
    ("store/transfer.py", ""): COPYING,
    ("store/database.py", "has schema"): "an older lumctl: see tests/unit/store/test_schema.py",
    ("store/lease.py", ""): LEASE,
    ("store/runs.py", "another plan is stored under the id"): "two plans with one digest",
    ("cli/changes.py", "--yes does not confirm that"): BY_HAND,
    (
        "cli/fabric_matchings.py",
        "time ran out before any",
    ): "no rack is concerned",
    ("cli/init_questions.py", "the input ended before"): "there is nothing to be done: no hint",
    ("cli/top/hosts.py", "is simulated and has no shell"): FINAL,
    ("cli/invocation.py", "not confirmed"): FINAL,
    ("store/demands.py", ""): QUEUE,
    ("swap/demand_queue.py", ""): QUEUE,
    ("cli/swap.py", "{}"): "the same refusal with one more command: see tests/system/test_autopilot.py",
    ("cli/slice.py", "is a plan of kind"): "a plan of another kind: the hint is the command that applies it",
    ("cli/job.py", ""): JOBS,
    (
        "change/phase_cells.py",
        "may change between its phases",
    ): "it needs a job that runs over phases: see tests/system/jobs/test_phase_permission.py",
    ("cli/job_profile.py", ""): "its hints are followed in tests/unit/cli/test_job_profile.py",
    ("cli/job_phases.py", ""): "its commands are typed in tests/system/jobs/test_job_phases.py",
    ("cli/job_state.py", ""): JOBS,
    ("cli/job_stragglers.py", ""): JOBS,
    ("cli/runbook_replay.py", "stopped before step"): FINAL,
    ("cli/runbook.py", "is for target"): "another target is named, as of cli/changes.py",
    ("cli/top/operations.py", ""): FINAL,
    ("cli/plugin.py", "is not empty"): FINAL,
    ("cli/top/replay.py", ""): FINAL,
    ("cli/top/runbooks.py", ""): FINAL,
    ("cli/inventory.py", "<changed_message>"): "a host's key: see tests/system/test_inventory_trust.py",
}
"""Refusals that no row walks, by file and words, each with the reason."""


def test_every_refusal_is_walked_or_has_a_reason_why_not() -> None:
    walked = {(row.file, row.says) for row in ROWS}
    missing = [str(each) for each in refusals() if not any(_is(each, key) for key in (*walked, *ELSEWHERE))]
    assert not missing, f"no row of ROWS follows the hint of: {missing}"
    gone = [key for key in (*walked, *ELSEWHERE) if not any(_is(each, key) for each in refusals())]
    assert not gone, f"lumctl refuses nothing in these words any more: {gone}"


def _is(refusal: object, key: tuple[str, str]) -> bool:
    return refusal.file == key[0] and key[1] in refusal.says


def test_an_author_of_a_runbook_is_told_what_to_write_and_an_operator_is_not(console) -> None:
    c = console("prototype")
    state = swapped_and_back(c)
    c.sim.clear()
    c("runbook", "export", state["run"], "--out", "edited.yaml")
    text = Path("edited.yaml").read_text()
    Path("edited.yaml").write_text(re.sub(r"\bkept: \[[^\]]*\]", "kept: []", text))
    refused = c.say("runbook", "replay", "edited.yaml", "--target", "sim", "--running", "--yes")
    assert (refused.code, refused.hint) == (5, "list the circuit under `kept` of a verify step")
    Path("edited.yaml").write_text(text)
    c("runbook", "replay", "edited.yaml", "--target", "sim", "--running", "--yes")
    replaced(c, state)
    c.fresh()
    state = swapped_then_rewritten(c)
    refused = c.say("swap", "rollback", state["run"], "--yes")
    assert refused.code == 5
    assert "step" not in refused.message + refused.hint
    assert "`" not in refused.hint


def test_ranks_that_returned_are_told_with_the_run_that_moved_them(console) -> None:
    """And not with a later run of the same job."""
    c = console("prototype")
    state = swapped_and_returned(c)
    c.sim.clear()
    c.swapped("s0-gpu0")
    c.sim.clear()
    c.do("swap", "apply", c.plan("finetune", "--back"))
    said = c.say("swap", "rollback", state["run"], "--yes")
    assert f"{state['later']} has moved the ranks back already" in said.hint
    told = c.say("runbook", "export", state["run"], "-o", "md").out
    assert "in effect" not in told
    assert "Later runs have changed the same devices or jobs: swap-0" in told
    assert f"jobs: {state['later']} has moved the ranks back already; see the placement: lumctl" in told
