"""What a refused ``swap plan`` offers: the simulator if that was meant, and to wait for a spare only if that helps."""

import pytest

from lumctl.cli.main import run
from lumctl.context import Context
from lumctl.inventory.model import Role
from lumctl.store import open_store
from lumctl.swap.explanations import NoSpareError

GPU = "h03-gpu2"
MEANT = "a simulator of this inventory runs: if that was meant, add --target sim"


@pytest.fixture
def refused(rack, monkeypatch, capsys, tmp_path):
    """Plan a swap that no spare can serve; what was said."""
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path))
    monkeypatch.delenv("LUMCTL_TARGET", raising=False)
    monkeypatch.setattr(Context, "observe", lambda _, **_how: rack.observation())

    def no_spare(*_given, **_options):
        raise NoSpareError(f"no spare can replace {GPU}", hint="see where light leads now: lumctl fabric show")

    monkeypatch.setattr("lumctl.cli.swap.plan_swap", no_spare)

    def plan(*options):
        code = run(["-i", str(rack.inventory.path), *options, "swap", "plan", "--failed", GPU])
        return code, capsys.readouterr().err

    return plan


def test_to_wait_is_offered_only_if_a_spare_could_come_free(refused, rack):
    rack.gpu(GPU, remap_failed=True)
    code, said = refused("--target", "sim")
    assert code == 5
    assert "lumctl -i" in said
    assert "--queue" not in said  # four spares are free, but no plan can use one: nothing would change
    for spare in (each.id for each in rack.inventory.accelerators.values() if each.role is Role.SPARE):
        rack.gpu(spare, remap_failed=True)
    code, said = refused("--target", "sim")
    assert f"to wait for a spare: lumctl -i {rack.inventory.path} --target sim swap plan --failed {GPU} --queue" in said


@pytest.mark.parametrize(
    ("options", "runs", "used", "said"),
    [((), True, False, True), (("--target", "rack"), True, False, False), ((), False, False, False),
     ((), True, True, False)],
    ids=["forgotten", "the-rack-is-meant", "no-simulator", "the-rack-was-changed-before"],
)  # fmt: skip
def test_a_simulator_that_may_have_been_meant_is_named(refused, rack, monkeypatch, options, runs, used, said):
    monkeypatch.setattr("lumctl.devices.endpoints.simulator_runs", lambda _: runs)
    if used:
        store = open_store(rack.inventory, "rack64", "rack")
        lease = store.leases.acquire("rack64", "test", term_s=60.0, now=1.0)
        about = {
            "kind": "swap",
            "title": "t",
            "target": "rack",
            "plan_digest": "d",
            "inventory_digest": "i",
            "who": "ann",
        }
        store.runs.begin(lease, about, {"digest": "d"}, now=1.0)
        store.close()
    code, text = refused(*options)
    assert code == 5
    assert (MEANT in text) is said
