"""Policies in an inventory: their defaults, and each mistake at its place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lumctl.daemon.autopilot.policy import remarks, require_sound
from lumctl.inventory.load import load_inventory
from lumctl.inventory.policies import How, Limits, PolicySubject
from lumctl.inventory.problems import InventoryError
from lumctl.spares.decision import require_policy

Write = Callable[[str | bytes], Path]
SOUND = "  - {name: p, how: apply, rules: [gpu.lost]}\n"


def with_policies(small: str, text: str) -> str:
    return f"{small}policies:\n{text}"


def test_without_any_there_are_none(write: Write, small: str):
    assert load_inventory(write(small)).policies == ()


def test_defaults_are_cautious(write: Write, small: str):
    (policy,) = load_inventory(write(with_policies(small, SOUND))).policies
    assert (policy.how, policy.matching.kinds, policy.matching.states) == (
        How.APPLY,
        (PolicySubject.ACCELERATOR,),
        ("failed",),
    )
    assert (policy.stands_s, policy.limits, policy.breaker.share) == (30.0, Limits(1, 1, 3), 0.1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  - {name: p, how: aply, rules: [x]}\n", ":20: found 'aply', expected notify, plan, approve or apply"),
        ("  - {name: p, how: apply}\n", ":5: key 'rules' is missing here"),
        ("  - {name: p, how: apply, rules: []}\n", ":34: found a list of length 0, expected at least 1"),
        ("  - {name: p, how: apply, rules: [x], limts: {}}\n", "key 'limts' is not known; did you mean 'limits'?"),
        ("  - {name: p, how: apply, rules: [x], states: [unknown]}\n", "found 'unknown', expected degraded or failed"),
        ("  - {name: p, how: apply, rules: [x], kinds: [circuit]}\n", "a swap does not repair a circuit"),
        ("  - {name: p, how: apply, rules: [x], components: [h9-*]}\n", "pattern 'h9-*' matches nothing"),
        ("  - {name: p, how: apply, rules: [x], jobs: [jab]}\n", "name 'jab' is not known; did you mean 'job'?"),
        ("  - {name: p, how: apply, rules: [x], timezone: Europe/Berln}\n", "did you mean 'Europe/Berlin'?"),
        ("  - {name: p, how: apply, rules: [x], hours: [{begins: '8'}]}\n", "expected a time of day such as 08:30"),
        ("  - {name: p, how: apply, rules: [x], hours: [{days: [mo]}]}\n", "found 'mo', expected mon, tue"),
        ("  - {name: p, how: apply, rules: [x], stands_s: 900}\n", "the policy would never act"),
        ("  - {name: p, how: apply, rules: [x], breaker: {share: 2}}\n", "found 2, expected at most 1"),
        (SOUND * 2, "policy 'p' is defined twice"),
    ],
)
def test_one_mistake_is_one_line_with_its_place(write: Write, small: str, text: str, expected: str):
    with pytest.raises(InventoryError) as error:
        load_inventory(write(with_policies(small, text)))
    assert len(error.value.problems) == 1
    assert expected in str(error.value.problems[0])
    assert error.value.problems[0].mark.line == small.count("\n") + 1 + text.count("\n")


def test_a_rule_that_there_is_not_is_named_with_its_place(write: Write, small: str):
    text = "  - {name: p, how: notify, rules: [gpu.lost, gpu.lots, 'gpu.xid/*', gpu.xid/restart]}\n"
    with pytest.raises(InventoryError) as error:
        require_sound(load_inventory(write(with_policies(small, text))))
    told = [str(problem) for problem in error.value.problems]
    assert len(told) == 2
    assert ":46: rule 'gpu.lots' is not known; did you mean 'gpu.lost'?" in told[0]
    assert "gpu.xid/restart" in told[1]


def test_what_may_not_be_meant_is_remarked(write: Write, small: str):
    text = SOUND + "  - {name: q, how: apply, rules: [gpu.lost], stands_s: 0}\n"
    told = list(remarks(load_inventory(write(with_policies(small, text)))))
    assert ["first fault of a storm" in told[0], "q: it never decides, because p" in told[1]] == [True, True]


ESCALATES = "policies:\n  - {name: p, how: approve, rules: [gpu.lost], escalate: {hook: oncall}}\n"


@pytest.mark.parametrize(
    ("receivers", "expected"),
    [
        ("", "receiver 'oncall' is not known"),
        ("  - {name: oncal, webhook_file: u}\n", "receiver 'oncall' is not known; did you mean 'oncal'?"),
        ("  - {name: oncall}\n", "found neither, expected one of webhook_file and command"),
        ("  - {name: oncall, webhook_file: u, command: [/bin/true]}\n", "found both, expected one of webhook_file and"),
        ("  - {name: oncall, command: [page]}\n", "found 'page', expected the path of a program"),
        ("  - {name: oncall, command: [/bin/true], token_file: t}\n", "a token needs a webhook_file"),
        ("  - {name: oncall, webhook_file: u, timeout_s: 0}\n", "found 0, expected a number above 0"),
        ("  - {name: oncall, webhook_file: u, url: https://x}\n", "key 'url' is not known"),
        ("  - {name: oncall, webhook_file: u}\n" * 2, "receiver 'oncall' is defined twice"),
    ],
)
def test_a_receiver_that_is_wrong_is_one_line_with_its_place(write: Write, small: str, receivers: str, expected: str):
    text = f"{small}{'receivers:' if receivers else ''}\n{receivers}{ESCALATES}"
    with pytest.raises(InventoryError) as error:
        load_inventory(write(text))
    assert expected in str(error.value.problems[0])
    assert error.value.problems[0].mark is not None


def test_the_files_of_a_receiver_lie_beside_the_inventory(write: Write, small: str):
    path = write(f"{small}receivers:\n  - {{name: oncall, webhook_file: url, token_file: ~/token}}\n{ESCALATES}")
    (receiver,) = load_inventory(path).receivers.values()
    assert receiver.webhook_file == path.parent / "url"
    assert receiver.token_file == Path.home() / "token"
    assert (receiver.timeout_s, receiver.give_up_after_s) == (10.0, 3600.0)


def test_without_sharing_the_oldest_demand_gets_what_fits_best(write: Write, small: str):
    sharing = load_inventory(write(small)).sharing
    assert (sharing.policy, sharing.weights, sharing.reserve) == ("best-fit", {}, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("weights: {job: 0}", ":18: found 0, expected a number above 0"),
        ("weights: {job: -1}", "found -1, expected a number above 0"),
        ("weights: {jab: 1}", ":13: job 'jab' is not known"),
        ("reserve: {X10: 1}", ":13: class 'X10' is not known; did you mean 'X100'?"),
        ("reserve: {X100: -1}", "found -1, expected at least 0"),
        ("reserve: {X100: 2}", "found a reserve of 2, but no rack has more than 1 spare of X100"),
        ("ageing_s: 0", "found 0, expected a number above 0"),
        ("preemption: always", "found 'always', expected never or fillers"),
        ("return_cost_s: -1", "found -1, expected at least 0"),
        ("polcy: fifo", "key 'polcy' is not known; did you mean 'policy'?"),
    ],
)
def test_one_mistake_in_sharing_is_one_line_with_its_place(write: Write, small: str, text: str, expected: str):
    of_h3 = "{id: h3-gpu0, model: X100, memory_gib: 80, pci: '0000:17:00.0', role: spare}"
    one = f"  - name: h3\n    accelerators: [{of_h3}]\n"
    spare = small.replace("  - name: h[1-3]\n", "  - name: h[1-2]\n", 1).replace("devices:\n", f"{one}devices:\n", 1)
    with pytest.raises(InventoryError) as error:
        load_inventory(write(f"{spare}sharing:\n  {text}\n"))
    assert len(error.value.problems) == 1
    assert expected in str(error.value.problems[0])
    assert error.value.problems[0].mark.line == spare.count("\n") + 2


def test_a_sharing_policy_that_is_not_installed_has_its_place(write: Write, small: str):
    with pytest.raises(InventoryError, match=r"sharing policy 'scarse' is not known; did you mean 'scarce'\?") as error:
        require_policy(load_inventory(write(f"{small}sharing: {{policy: scarse}}\n")))
    assert error.value.problems[0].mark.line == small.count("\n") + 1
