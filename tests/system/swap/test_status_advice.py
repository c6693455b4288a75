"""What ``status`` advises is true: no swap that a dead mesh prevents, and what comes after a swap."""

import json
from collections.abc import Iterator

import pytest
from console import COMMAND, Console, consoles

from lumctl.cli.output import GLYPHS
from lumctl.cli.top.swaps import SwapChecker
from lumctl.daemon.notifications.message import cases_of
from lumctl.tui.look.marks import Marks
from lumctl.tui.views.headline import news_of
from lumctl.tui.views.incidents import head_text
from lumctl.tui.views.records import RecordedLook


@pytest.fixture(scope="module", name="opened")
def _opened() -> Iterator[dict[str, Console]]:
    with consoles() as open_console:
        yield {name: open_console(name) for name in ("prototype", "rack64", "two-meshes")}


@pytest.fixture
def c(opened: dict[str, Console]) -> Console:
    opened["prototype"].fresh()
    return opened["prototype"]


def status(c: Console) -> dict[str, list[dict[str, str]]]:
    return json.loads(c.say("status", "-o", "json").out)


def commands_in(text: str) -> list[str]:
    return [found.strip() for found in COMMAND.findall(text)]


def test_no_swap_is_advised_that_would_write_a_mesh_that_does_not_answer(c: Console) -> None:
    c.sim.inject("s1-gpu0", "gpu-lost")
    c.sim.inject("mesh", "mesh-down")
    gpu, mesh = status(c)["remedies"]
    assert (gpu["cause"], gpu["command"]) == ("s1-gpu0", "")
    assert "; no swap can be applied while mesh does not answer (" in gpu["by_hand"]
    assert mesh["by_hand"].endswith("until then mesh cannot be changed: no swap that writes it can be applied")
    plan = c.say("swap", "plan", "--failed", "s1-gpu0")
    warning = " ".join(plan.out.split()).partition("warning: ")[2]
    assert warning.startswith("mesh did not answer when this plan was made (")
    assert "and the plan writes it: it cannot be applied until mesh answers" in warning
    why, apply = plan.err.splitlines()[-2:]
    assert why.startswith("it cannot be applied until mesh answers; see what to do: lumctl")
    assert apply.startswith("then apply it: lumctl")
    assert c.type(commands_in(why)[0]).code == 0
    (listed,) = json.loads(c.say("swap", "list", "-o", "json").out)["plans"]
    assert listed["unanswered"] == ["mesh"]
    assert "swap show" in listed["next"]
    assert "apply it" not in c.say("swap", "list").err
    refused = c.type(f"{commands_in(apply)[0]} --yes")
    assert refused.code == 3
    assert c.type(commands_in(refused.err)[0]).code == 0
    c.sim.clear("mesh")
    assert c.type(f"{commands_in(apply)[0]} --yes --job-is-stopped").code == 0


def test_a_job_that_waits_is_not_offered_a_spare_while_the_mesh_to_write_does_not_answer(c: Console) -> None:
    for each in ("s1-gpu0", "s3-gpu0"):
        c.sim.inject(each, "gpu-lost")
    c.say("swap", "plan", "--failed", "s1-gpu0", "--queue")
    c.sim.clear("s3-gpu0")
    assert "s3-gpu0 can replace it now" in c("spare", "queue")
    c.sim.inject("mesh", "mesh-down")
    for told in (c.say("spare", "queue").out, c.say("status").out, c.say("spare", "list").out):
        words = " ".join(told.split())
        assert "can replace it now" not in words
        assert "swap plan" not in words
        assert "no swap can be applied while mesh does not answer (" in words
        assert "); see what to do: lumctl" in words
    (demand,) = json.loads(c.say("spare", "queue", "-o", "json").out)["demands"]
    assert (demand["given"], demand["command"]) == (["s3-gpu0"], None)
    assert c.type(commands_in(demand["words"])[0]).code == 0
    c.sim.clear("mesh")
    (demand,) = json.loads(c.say("spare", "queue", "-o", "json").out)["demands"]
    assert c.type(demand["command"]).code == 0


def test_a_swap_on_another_mesh_is_still_advised(opened: dict[str, Console]) -> None:
    c = opened["rack64"]
    c.fresh()
    for each, kind in (("h02-gpu1", "gpu-lost"), ("h03-gpu2", "gpu-lost"), ("rail2", "mesh-down")):
        c.sim.inject(each, kind)
    commands = {each["cause"]: each["command"] for each in status(c)["remedies"]}
    assert "swap plan --failed h02-gpu1" in commands["h02-gpu1"]
    assert commands["h03-gpu2"] == commands["rail2"] == ""


def test_only_the_ranks_for_which_there_are_spares_are_moved_from_a_host_to_drain(opened: dict[str, Console]) -> None:
    c = opened["rack64"]
    c.fresh()
    for lost in ("h03-gpu0", "h16-gpu0"):
        c.sim.inject(lost, "gpu-lost")
    drain = next(each["drain"] for each in status(c)["remedies"] if each["cause"] == "h03-gpu0")
    assert drain["words"] == "before you drain h03, move train-a ranks 10, 18, 26"
    assert "swap plan --failed h03-gpu1,h03-gpu2,h03-gpu3 --even-if-healthy" in drain["command"]
    assert c.type(drain["command"]).code == 0


def test_a_host_that_may_be_up_is_to_be_looked_at_before_its_ranks_are_replaced(opened: dict[str, Console]) -> None:
    c = opened["rack64"]
    c.fresh()
    c.sim.inject("h10", "unreachable")
    (remedy,) = status(c)["remedies"]
    doubt = "h10 does not answer, but 8 of its 8 links carry light: find out whether it is really down"
    assert remedy["doubt"] == doubt
    lines = [line.strip() for line in c.say("status").out.splitlines()]
    assert lines[lines.index(f"{doubt}; if it is:") + 1] == remedy["command"]
    assert f"warning: {doubt}" in " ".join(c.type(remedy["command"]).out.split())


def test_the_headline_offers_the_way_around_a_puc_that_status_offers(opened: dict[str, Console]) -> None:
    c = opened["two-meshes"]
    c.fresh()
    c.sim.inject("m0/puc/8", "stuck-cross")
    c.ahead_s = 60.0  # light that is dark right after a run is excused
    with c.context() as context:
        first, *_ = news_of(SwapChecker(c.context)(RecordedLook(context.observe())))
    (remedy,) = (each for each in status(c)["remedies"] if each["avoid"])
    assert first.what.startswith("m0/puc/8: ")
    assert "swap plan --avoid" not in first.do
    there = f"-i {c.path} --target sim "
    assert remedy["by_hand"].replace(there, "") == first.do


def test_what_a_swap_took_out_is_to_be_repaired_and_returned_but_is_no_fault(c: Console) -> None:
    assert status(c)["repairs"] == []
    c.swapped("s1-gpu0")
    shown = c.say("status")
    assert shown.code == 0
    assert "\n  repair s1-gpu0; then return 1 rank of finetune:\n" in shown.out
    assert status(c)["remedies"] == []
    c.sim.clear("s1-gpu0")
    (row,) = status(c)["repairs"]
    assert row["words"] == "s1-gpu0 is ok again: return 1 rank of finetune"
    assert row["command"] in c("status")
    assert c.type(row["command"]).code == 0
    assert "to do" not in c("status", "--host", "s0")


def apply(c: Console, command: str) -> None:
    """Type a command that makes a plan, and apply the plan."""
    plan = json.loads(c.type(f"{command} -o json").out)["id"]
    assert c.say("swap", "apply", plan, "--yes", "--job-is-stopped").code == 0


def test_a_rank_returns_to_a_dead_transmitter_only_after_that_was_read_to_send(c: Console) -> None:
    c.sim.inject("s1-gpu0-a", "dark")
    apply(c, "lumctl swap plan --failed s1-gpu0")
    (row,) = status(c)["repairs"]
    assert row["words"] == (
        "s1-gpu0-a was at fault when s1-gpu0 was replaced (sends no light, but a circuit needs it), and nothing shows "
        "that it is repaired: repair s1-gpu0-a, then light it; 1 rank of finetune can return when it sends"
    )
    assert "device set s1-gpu0-a transmit=on" in row["command"]
    refused = c.say("swap", "plan", "finetune", "--back")
    assert "rank 1 stays on s3-gpu0: s1-gpu0-a was at fault when s1-gpu0 was replaced" in refused.err
    assert refused.code == 5
    for _ in ("it is switched on", "it is on already"):
        lit = c.type(f"{row['command']} --yes")
        assert (lit.code, "warning: s1-gpu0-a is on, but sends no light" in lit.err) == (0, True)
    assert status(c)["repairs"] == [row]
    c.sim.clear("s1-gpu0-a")
    assert "sends no light" not in c.type(f"{row['command']} --yes").err
    (row,) = status(c)["repairs"]
    assert row["words"] == "s1-gpu0 is ok again: return 1 rank of finetune"
    c.sim.inject("s0", "unreachable")
    (waits,) = status(c)["repairs"]
    assert waits["command"] == ""
    assert waits["words"].startswith(
        "s1-gpu0 is ok again, but 1 rank of finetune cannot return now: no swap can be applied while s0 does not answer"
    )
    c.sim.clear("s0")
    apply(c, row["command"])
    assert status(c)["repairs"] == []


def test_a_spare_whose_dead_transmitter_a_return_has_darkened_is_not_free_until_it_is_read_to_send(c: Console) -> None:
    c.sim.inject("s1-gpu0", "gpu-lost")
    apply(c, "lumctl swap plan --failed s1-gpu0")
    c.sim.clear("s1-gpu0")
    c.sim.inject("s3-gpu0-a", "dark")
    apply(c, "lumctl swap plan finetune --back")
    (spare,) = json.loads(c.say("spare", "list", "-o", "json").out)["spares"]
    assert (spare["accelerator"], spare["state"]) == ("s3-gpu0", "unfit")
    (reason,) = spare["reasons"]
    assert reason.startswith("its lane s3-gpu0-a sent no light before it was replaced, and nothing shows that it does")
    (light,) = commands_in(reason)
    c.sim.inject("s1-gpu0", "gpu-lost")
    refused = c.say("swap", "plan", "--failed", "s1-gpu0")
    assert (refused.code, "s3-gpu0-a sent no light before it was replaced" in refused.err) == (5, True)
    c.type(f"{light} --yes")
    (spare,) = json.loads(c.say("spare", "list", "-o", "json").out)["spares"]
    assert spare["state"] == "unfit"
    c.sim.clear("s3-gpu0-a")
    (spare,) = json.loads(c.say("spare", "list", "-o", "json").out)["spares"]
    assert spare["state"] in {"free", "burning-in"}
    apply(c, "lumctl swap plan --failed s1-gpu0")


def test_an_operator_returns_a_rank_to_a_lane_that_cannot_be_shown_to_be_repaired(c: Console) -> None:
    c.sim.inject("s1-gpu0-a", "link-down")
    apply(c, "lumctl swap plan --failed s1-gpu0")
    c.sim.clear("s1-gpu0-a")
    (row,) = status(c)["repairs"]
    assert row["words"].endswith(
        "), and nothing shows that it is repaired: repair s1-gpu0-a; then return 1 rank of finetune"
    )
    assert "swap plan finetune --back --even-if-unproven" in row["command"]
    assert "warning: s1-gpu0-a was at fault" in c.type(row["command"]).out
    apply(c, row["command"])
    assert status(c)["repairs"] == []


def test_without_a_free_spare_a_return_that_frees_one_is_advised_if_it_can_be_proved(c: Console) -> None:
    c.swapped("s1-gpu0")
    c.sim.clear("s1-gpu0")
    c.sim.inject("s0-gpu0", "gpu-lost")
    (lost,) = status(c)["remedies"]
    back, swap = commands_in(lost["by_hand"])
    assert "swap in a spare" not in c.say("status").out
    assert "return rank 1 of finetune to s1-gpu0: lumctl" in lost["by_hand"]
    c.sim.inject("s2-gpu0-a", "dark")
    c.sim.inject("s0-gpu0-b", "dark")
    (row,) = status(c)["repairs"]
    assert "ok again, but 1 rank of finetune cannot return now: no swap can be applied while s" in row["words"]
    assert all("--back" not in each["by_hand"] for each in status(c)["remedies"])
    for lane in ("s2-gpu0-a", "s0-gpu0-b"):
        c.sim.clear(lane)
    apply(c, back)
    apply(c, swap)
    assert status(c)["remedies"] == []


def test_a_job_that_was_not_resumed_is_to_be_resumed_until_it_runs_again(opened: dict[str, Console]) -> None:
    c = opened["rack64"]
    c.fresh()
    assert status(c)["stopped_jobs"] == []
    c.sim.inject("h03-gpu2", "gpu-lost")
    apply(c, "lumctl swap plan --failed h03-gpu2")
    (row,) = status(c)["stopped_jobs"]
    assert row["words"] == "train-a was not resumed after swap-0001: h16-gpu2 is idle; resume it"
    assert row["command"] in c("status")
    assert "was not resumed" not in c("status", "--job", "train-b")
    warned = c.say("check", "--least-spares", "0")
    assert (warned.code, "train-a was not resumed after swap-0001" in warned.out) == (1, True)
    assert row["command"].endswith("sim resume train-a")
    c("sim", "resume", "train-a")
    assert status(c)["stopped_jobs"] == []
    assert c.say("check", "--least-spares", "0").code == 0


def test_ranks_that_run_beside_what_a_swap_took_out_are_to_be_moved_before_the_host_is_drained(
    opened: dict[str, Console],
) -> None:
    c = opened["rack64"]
    c.fresh()
    c.sim.inject("h03-gpu2", "gpu-lost")
    apply(c, "lumctl swap plan --failed h03-gpu2")
    drain = status(c)["repairs"][-1]
    assert drain["words"] == "before you drain h03, move train-a ranks 2, 10, 26"
    (explained,) = json.loads(c.say("health", "explain", "h03-gpu2", "-o", "json").out)["explanations"]
    assert explained["repairs"] == status(c)["repairs"]
    assert "took it out of its job; its rank 18 of train-a runs on h16-gpu2 since" in explained["because"]
    assert explained["because"].endswith(", by swap-0001")
    apply(c, drain["command"])
    assert all("before you drain" not in row["words"] for row in status(c)["repairs"])


def test_of_two_losses_and_one_spare_the_second_says_that_both_cannot_be_replaced(opened: dict[str, Console]) -> None:
    c = opened["rack64"]
    c.fresh()
    for lost in ("h03-gpu2", "h04-gpu2", "h05-gpu1"):
        c.sim.inject(lost, "gpu-lost")
    first, second, third = status(c)["remedies"]
    assert second["by_hand"].startswith("no swap replaces it together with h03-gpu2: decide which comes first; ")
    assert all("together" not in each["by_hand"] for each in (first, third))
    apply(c, second["command"])
    without = next(each for each in status(c)["remedies"] if each["cause"] == "h03-gpu2")
    assert (without["command"], without["ranks"]) == ("", ["train-a/18"])
    assert without["by_hand"].startswith("no spare that fits is free; ")
    warned = c.say("sim", "resume", "train-a").err
    assert "warning: h05-gpu1, h03-gpu2 are failed: no rank works there; see what to do: lumctl" in warned
    findings = next(each["findings"] for each in status(c)["accelerators"] if each["id"] == "h03-gpu2")
    assert all("swap in a spare" not in each["advice"] for each in findings)
    c.sim.clear("h04-gpu2")
    with c.context() as context:
        first, *_ = news_of(SwapChecker(c.context)(RecordedLook(context.observe())))
    assert first.do.startswith("return rank 19 of train-a to h04-gpu2: lumctl swap plan train-a --back; then: lumctl")
    for command in commands_in(first.do):
        apply(c, command.rstrip(";"))


@pytest.mark.parametrize(
    ("name", "lost", "stuck"), [("two-meshes", "h1-gpu0", "m0/puc/32"), ("prototype", "s1-gpu0", "mesh/puc/17")]
)
def test_a_swap_that_a_stuck_puc_prevents_names_it_and_the_way_around_it(
    opened: dict[str, Console], name: str, lost: str, stuck: str
) -> None:
    """By what the mesh reports; if that cannot be read, by the paths of the light that did not arrive."""
    c = opened[name]
    c.fresh()
    c.sim.inject(lost, "gpu-lost")
    plan = json.loads(c.say("swap", "plan", "--failed", lost, "-o", "json").out)["id"]
    c.sim.inject(stuck, "stuck-bar")
    failed = c.say("swap", "apply", plan, "--yes", "--job-is-stopped")
    assert stuck in failed.hint
    assert ("may be stuck" if name == "prototype" else "did not take the written state") in failed.hint
    (remedy,) = status(c)["remedies"]
    assert remedy["by_hand"].startswith("swap-0001 tried it, and light was lost: ")
    assert f"--failed {lost} --avoid {stuck}" in remedy["command"]
    assert "swap-0001 tried it, and light was lost" in " ".join(c("swap", "plan", "--failed", lost).split())
    with c.context() as context:
        look = SwapChecker(c.context)(RecordedLook(context.observe()))
    first, *_ = news_of(look)
    (case,) = cases_of(look.observation.report).values()
    assert (first.by_key, first.do) == (False, "swap-0001 tried it, and light was lost")
    shown = head_text(look, case, Marks(GLYPHS), look.observation.at).plain
    assert f"plan around it: lumctl swap plan --failed {lost} --avoid {stuck}" in " ".join(shown.split())
    apply(c, remedy["command"])
    assert status(c)["remedies"] == []


def test_healthy_ranks_are_not_moved_to_a_spare_that_a_dead_one_needs(opened: dict[str, Console]) -> None:
    c = opened["rack64"]
    c.fresh()
    c.sim.inject("h03-gpu2", "gpu-lost")
    apply(c, "lumctl swap plan --failed h03-gpu2")
    assert "swap plan --failed h03 --even-if-healthy" in status(c)["repairs"][-1]["command"]
    c.sim.inject("h05-gpu1", "gpu-lost")
    drain = status(c)["repairs"][-1]
    assert drain["words"] == (
        "before you drain h03, move train-a ranks 2, 10, 26; no swap can move them now: h05-gpu1 may need the same "
        "spares and comes first"
    )
    assert drain["command"] == ""
