"""Plans that were made and not applied: ``swap list`` shows them below the runs, with commands that work."""

import json
import re
from collections.abc import Iterator

import pytest
from console import Console, consoles

from lumctl.cli.unapplied_plans import MOST_SHOWN

APPROVING = (
    "policies:\n  - name: dead-gpu\n    how: approve\n    rules: [gpu.lost]\n"
    "    approval: {by_hand: true, expires_s: 600}\nlumctl: 1"
)


@pytest.fixture(scope="module", name="opened")
def _opened() -> Iterator[dict[str, Console]]:
    with consoles() as open_console:
        yield {
            "plain": open_console("prototype"),
            "approving": open_console("prototype", lambda text: text.replace("lumctl: 1", APPROVING)),
        }


@pytest.fixture
def c(opened: dict[str, Console]) -> Console:
    opened["plain"].fresh()
    return opened["plain"]


def listed(c: Console) -> list[dict[str, object]]:
    return json.loads(c("swap", "list", "-o", "json"))["plans"]


def commands(text: str) -> list[str]:
    return re.findall(r"(?<=: )lumctl .*", text)


def test_a_plan_is_listed_below_the_runs_until_it_is_applied(c: Console) -> None:
    assert listed(c) == []
    assert "NOT APPLIED" not in c("swap", "list")
    c.sim.inject("s1-gpu0", "gpu-lost")
    plan = c.plan("--failed", "s1-gpu0")
    shown = c.say("swap", "list")
    runs, _, plans = shown.out.partition("NOT APPLIED")
    assert "fabric-0001" in runs
    assert re.search(rf"{plan} +[0-9.]+m?s  finetune: replace s1-gpu0 by s3-gpu0", plans)
    assert c("swap", "list", "-o", "name").split() == ["fabric-0001"]
    (row,) = listed(c)
    assert (row["plan"], row["stale"], row["waits_for_approval"]) == (plan, None, False)
    look, apply = commands(shown.err)
    assert str(row["next"]).endswith(f"swap apply {plan} --target sim")
    assert plan in c.type(look).out
    assert c.type(apply).code == 0
    assert listed(c) == []


def test_a_plan_that_another_one_has_made_stale_is_marked_and_not_proposed(c: Console) -> None:
    c.sim.inject("s1-gpu0", "gpu-lost")
    first = c.plan("--failed", "s1-gpu0")
    c.do("swap", "apply", c.plan("--failed", "s1-gpu0"))
    shown = c.say("swap", "list")
    assert "stale: finetune does not run where it ran when it was made" in shown.out
    (look,) = commands(shown.err)
    assert c.type(look).code == 0
    (row,) = listed(c)
    assert row["plan"] == first
    assert c.type(str(row["next"])).code == 0


def test_the_plan_of_a_rollback_that_was_only_shown_is_not_proposed(c: Console) -> None:
    """Its warning, that a rank would return to an accelerator that has failed, would be missing there."""
    run = c.swapped("s1-gpu0")
    dry = c.say("swap", "rollback", run, "--dry-run")
    assert "the plan was not stored" in dry.err
    assert c.say("swap", "show", dry.out.split()[0]).code == 2
    assert not listed(c)


def test_the_plan_of_each_run_is_found_by_its_id_and_a_dry_run_says_that_its_plan_is_not(c: Console) -> None:
    (plan,) = re.findall(r"plan-\w+", c("swap", "show", "fabric-0001"))
    assert c("swap", "show", plan).startswith(f"{plan}  program ")
    dry = c.say("swap", "plan", "--failed", "s1-gpu0", "--even-if-healthy", "--dry-run")
    assert "dry run: the plan was not stored" in dry.err
    assert c.say("swap", "show", dry.out.split()[0]).code == 2


def test_a_plan_whose_devices_were_written_since_is_stale(c: Console) -> None:
    plan = c.plan("--failed", "s1-gpu0", "--even-if-healthy")
    unused = next(
        puc
        for puc, state in c.cells()["mesh"].items()
        if state.value != "x" and c.say("device", "set", f"mesh/puc/{puc}", "state=cross", "--dry-run").code == 0
    )
    run = c.do("device", "set", f"mesh/puc/{unused}", "state=cross")
    why = "mesh is not in the state that it had when it was made"
    assert [row["stale"] for row in listed(c)] == [why]
    assert why in c.say("swap", "apply", plan, "--yes").message
    c.do("swap", "rollback", run)
    assert [row["stale"] for row in listed(c)] == [None]
    c.do("swap", "apply", plan)


def test_a_plan_of_another_version_of_the_inventory_is_stale(c: Console) -> None:
    c.plan("--failed", "s1-gpu0", "--even-if-healthy")
    c.edit(("lumctl: 1", "# edited\nlumctl: 1"))
    assert [row["stale"] for row in listed(c)] == ["the inventory has changed since"]


def test_of_many_plans_the_newest_are_shown_and_all_are_in_the_document(c: Console) -> None:
    plan = c.plan("--failed", "s1-gpu0", "--even-if-healthy")
    with c.store() as store:
        kept = store.runs.plan(plan)
        for number in range(300):
            made_at = kept["created_at"] - 60 - number
            store.runs.save_plan({**kept, "id": f"plan-{number:08}", "digest": f"{number:064}", "created_at": made_at})
    shown = c.say("swap", "list")
    assert shown.out.count("plan-") == MOST_SHOWN
    assert f"{301 - MOST_SHOWN} older ones were not applied either" in shown.err
    assert [row["plan"] for row in listed(c)][:2] == [plan, "plan-00000000"]
    assert len(listed(c)) == 301


def test_a_title_with_control_characters_is_escaped(c: Console) -> None:
    plan = c.plan("--failed", "s1-gpu0", "--even-if-healthy")
    with c.store() as store:
        store.runs.save_plan({**store.runs.plan(plan), "id": "plan-x", "digest": "x", "title": "a\x1b[1mb"})
    shown = c.say("swap", "list")
    assert "a\\x1b[1mb" in shown.out
    assert "\x1b" not in shown.out + shown.err


def test_a_plan_that_waits_for_approval_gets_that_command_and_a_rejected_one_is_left_out(opened) -> None:
    c = opened["approving"]
    c.fresh()
    c.sim.inject("s1-gpu0", "gpu-lost")
    plan = c.plan("--failed", "s1-gpu0")
    shown = c.say("swap", "list")
    assert "waits for approval" in shown.out
    _, approve = commands(shown.err)
    assert approve.endswith(f"swap approve {plan} --target sim")
    assert c.type(approve).code == 0
    assert f"swap apply {plan}" in commands(c.say("swap", "list").err)[-1]
    other = c.plan("--failed", "s1-gpu0")
    c("swap", "approve", other, "--reject")
    assert [row["plan"] for row in listed(c)] == [plan]
    c.ahead_s = 700.0
    assert listed(c) == []
