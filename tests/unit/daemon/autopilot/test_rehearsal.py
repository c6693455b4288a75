"""Trying policies on a history: the same each time, and as the daemon would decide."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.daemon.autopilot.rehearsal import Rehearsal, read_history
from lumctl.errors import UsageError
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.inventory.policies import ApprovalTerms, How, Limits
from lumctl.time_text import iso_text

NOW = 1_800_000_000.0


def failed(component: str, after_s: float = 0.0, kind: str = "accelerator", rule: str = "gpu.lost") -> Transition:
    return Transition(NOW + after_s, component, kind, State.OK, State.FAILED, (rule,), f"{rule} was seen")


def well(component: str, after_s: float) -> Transition:
    return Transition(NOW + after_s, component, "accelerator", State.FAILED, State.OK, (), "")


def run(
    scene, *history: Transition, approve_after_s: float | None = None, hours: float = 2.0
) -> list[tuple[float, str, str]]:
    inventory = replace(scene.inventory, policies=tuple(scene.policies))
    rehearsal = Rehearsal(inventory, "rack", approve_after_s=approve_after_s)
    ends_at = history[-1].at + hours * 3600
    return [(each.at - NOW, each.what, each.component) for each in rehearsal.run(history, ends_at=ends_at)]


def test_a_dead_gpu(scene):
    scene.policy()
    told = run(scene, failed("h03-gpu2"))
    assert told[:3] == [(0.0, "nothing", "h03-gpu2"), (30.0, "apply", "h03-gpu2"), (30.0, "applied", "h03-gpu2")]
    assert told == run(scene, failed("h03-gpu2"))


def test_one_that_comes_back_in_time_is_left(scene):
    scene.policy()
    assert run(scene, failed("h03-gpu2"), well("h03-gpu2", 29.0)) == [(0.0, "nothing", "h03-gpu2")]


def test_an_hour_later_there_is_room_for_another(scene):
    scene.policy(limits=Limits(1, 1, 3), cool_down_s=0.0, oldest_s=86_400.0)
    told = run(scene, failed("h03-gpu2"), failed("h09-gpu1", 600.0))
    assert [at for at, what, _ in told if what == "applied"] == [30.0, 3630.0]


def test_a_storm(scene):
    scene.policy(oldest_s=86_400.0)
    told = run(scene, *(failed(f"h{h:02}-gpu{g}", h + g / 4) for h in range(1, 11) for g in range(4)))
    whats = [what for _, what, _ in told]
    assert "applied" not in whats
    assert [what for what in whats if what.startswith("breaker")] == ["breaker-opened", "breaker-closed"]


def test_without_and_with_a_person_who_approves(scene):
    scene.policy(How.APPROVE, approval=ApprovalTerms(expires_s=3600.0))
    alone = run(scene, failed("h03-gpu2"))
    assert [what for _, what, _ in alone] == ["nothing", "ask", "wait", "escalated", "nothing"]
    approved = run(scene, failed("h03-gpu2"), approve_after_s=120.0)
    assert [(at, what) for at, what, _ in approved if what == "applied"] == [(150.0, "applied")]


def test_without_a_spare_of_its_kind_it_says_so(scene):
    scene.policy(limits=Limits(9, 9, 9), cool_down_s=0.0)
    told = run(scene, *(failed(f"h16-gpu{n}") for n in range(4)), failed("h03-gpu2", 1.0))
    assert [(what, name) for _, what, name in told if what in {"applied", "failed"}] == [("failed", "h03-gpu2")]


def test_a_history_as_a_file(tmp_path: Path):
    rows = [{"at": NOW + n, "component": f"h0{n}-gpu0", "kind": "accelerator", "after": "failed"} for n in (2, 1)]
    path = tmp_path / "history.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    assert [row.component for row in read_history(path)] == ["h01-gpu0", "h02-gpu0"]
    path.write_text("\n".join(json.dumps({**row, "at": iso_text(row["at"])}) for row in rows))
    assert [(row.at, row.component) for row in read_history(path)] == [(NOW + 1, "h01-gpu0"), (NOW + 2, "h02-gpu0")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ('{"at": 1}', ":1:1: key 'component' is missing here"),
        ("\n\n[1,", ":3:4: found the end of the line, expected JSON"),
        ("nonsense", ":1:1: found nonsense, expected JSON"),
        ("[]", ":1:1: found [], expected a mapping"),
        ('{"at": true, "component": "a", "kind": "host", "after": "ok"}', ":1:2: at: found true, expected seconds"),
        ('{"at": "2026-11-21T18:00", "component": "a", "kind": "host", "after": "ok"}', "or ISO 8601 with zone"),
        ('{"at": 1, "component": "a", "kind": "gpu", "after": "ok"}', ':1:29: kind: found "gpu", expected accelerator'),
        ('{"at": 1, "component": "a", "kind": "host", "after": "faild"}', "did you mean 'failed'?"),
        ('{"at": 1, "component": "a", "kind": "host", "after": "ok", "rules": "x"}', "expected a list"),
    ],
)
def test_what_is_no_history(tmp_path: Path, text: str, said: str):
    path = tmp_path / "history.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        read_history(path)
    assert said in error.value.message
