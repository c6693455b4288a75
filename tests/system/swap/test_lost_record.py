"""A rack whose record was lost, on which a job runs where a swap has placed it: its light is read before anything."""

import json
import time

import pytest

from lumctl.change import apply
from lumctl.change.plan import Start
from lumctl.context import Context
from lumctl.errors import RefusedError
from lumctl.inventory.wiring import own_cells
from lumctl.runbook import document, yaml_text
from lumctl.runbook.replay import replay_on_rack
from lumctl.store import Record, store_at
from lumctl.swap import plan_adopt, plan_fabric, plan_settings, plan_swap, require_cuts_agreed

SWAPPED = ("s0-gpu0", "s3-gpu0", "s2-gpu0")


@pytest.fixture(scope="module")
def rack(rack_of, tmp_path_factory):
    made = rack_of("prototype", tmp_path_factory.mktemp("lost"))
    rack = next(made)
    rack.swap = apply(rack.context, plan_swap(rack.context, "finetune", ["s1-gpu0"], even_if_healthy=True)).run
    yield rack
    next(made, None)


@pytest.fixture
def lost(rack, tmp_path):
    """A context on the same rack whose store is empty."""
    store = store_at(str(tmp_path / "empty"), rack="prototype")
    with Context(rack.inventory, "sim", endpoints=rack.sim.endpoints(), store=lambda _rack: store) as context:
        yield context
    store.close()


def light(rack):
    """The true state of the rack."""
    return rack.cells(), rack.transmitters()


def fabric(context, **how):
    plan = plan_fabric(context, "prototype", **how)
    require_cuts_agreed(context, plan, "lumctl fabric apply --target sim")
    apply(context, plan)


def transmit_off(context):
    apply(context, plan_settings(context, "s3-gpu0-a", ["transmit=off"], even_if_used=True))


def replayed(context, rack):
    run = rack.store.runs.get(rack.swap)
    book = yaml_text.load(yaml_text.dump(document.make(run, rack.store, rack.inventory)), "x")
    replay_on_rack(book, context, progress=print, before_step=lambda _step: None)


@pytest.mark.parametrize(
    "write",
    [
        lambda context, _rack: fabric(context),
        lambda context, _rack: apply(context, plan_fabric(context, "prototype")),
        lambda context, _rack: fabric(context, rewrite=True),
        lambda context, _rack: plan_swap(context, "finetune", ["s2-gpu0"], even_if_healthy=True),
        lambda context, _rack: apply(context, plan_settings(context, "mesh/puc/3", ["state=cross"])),
        lambda context, _rack: transmit_off(context),
        replayed,
    ],
    ids=["fabric", "fabric-engine", "rewrite", "swap-plan", "cell", "transmitter", "replay"],
)
def test_every_writing_command_refuses_and_names_the_way_out(rack, lost, write):
    before = light(rack)
    with pytest.raises(RefusedError) as refused:
        write(lost, rack)
    assert "lumctl store adopt prototype" in refused.value.hint or "--cut" in refused.value.hint
    assert light(rack) == before
    assert lost.store("prototype").runs.all() == () or all(
        run.state == "refused" for run in lost.store("prototype").runs.all()
    )


def test_the_placement_that_the_light_shows_is_adopted_and_programmed(rack, lost):
    before = light(rack)
    plan = plan_adopt(lost, "prototype")
    assert [line for line in plan.why if "rank 1: s1-gpu0 by the inventory" in line and "-> s3-gpu0" in line]
    done = apply(lost, plan)
    assert len(done.verified) == 6
    assert lost.assignment()["finetune"] == SWAPPED
    assert light(rack) == before
    with pytest.raises(RefusedError, match="adopted the placement of the jobs") as refused:
        plan_swap(lost, "finetune", ["s2-gpu0"], even_if_healthy=True)
    assert "lumctl fabric apply" in refused.value.hint
    fabric(lost)
    assert lost.assignment()["finetune"] == SWAPPED
    report = lost.observe().report
    assert [c.state.value for c in report.circuits.values()] == ["ok"] * 6
    assert plan_adopt(lost, "prototype").steps == ()
    rack.context.store("prototype").runs.doubt("mesh", rack.swap)  # the other record does not know of these cells
    apply(rack.context, plan_fabric(rack.context, "prototype"))


def test_a_rank_that_no_light_shows_is_named_and_placed_by_an_operator(rack, lost):
    for lane in ("s3-gpu0-a", "s3-gpu0-b"):
        rack.sim.inject(lane, "dark")
    rack.sim.inject("s0-gpu0-b", "dark")
    rack.sim.inject("s2-gpu0-a", "dark")
    try:
        with pytest.raises(RefusedError, match="does not show where rank 1 of finetune runs") as refused:
            plan_adopt(lost, "prototype")
        assert "--place finetune=" in refused.value.hint
        with pytest.raises(RefusedError, match="the light contradicts"):
            plan_adopt(lost, "prototype", given={"finetune": ("s2-gpu0", "s3-gpu0", "s0-gpu0")})
        apply(lost, plan_adopt(lost, "prototype", given={"finetune": SWAPPED}))
        assert lost.assignment()["finetune"] == SWAPPED
    finally:
        rack.clear()


@pytest.fixture
def old(rack, tmp_path):
    """A context on the same rack whose store is a copy from before the swap: it knows the mesh as it was then."""
    store = store_at(str(tmp_path / "old"), rack="prototype")
    start = Start.from_document(rack.store.runs.get(rack.swap).plan["start"])
    cells = start.cells("mesh", own_cells(rack.inventory, rack.inventory.devices["mesh"]))
    now = time.time()
    lease = store.leases.acquire("prototype", "me", term_s=30.0, now=now)
    about = {"kind": "fabric", "target": "sim", "title": "t", "plan_digest": "d", "inventory_digest": "i", "who": "me"}
    run = store.runs.begin(lease, about, {"digest": "d"}, now=now)
    outcome = Record(now, "outcome", "1", {})
    store.runs.conclude(lease, run, outcome, states={"mesh": cells}, placed=dict(start.assignment))
    store.runs.end(lease, run, Record(now, "end", "", {}), "done")
    store.leases.release(lease)
    with Context(rack.inventory, "sim", endpoints=rack.sim.endpoints(), store=lambda _rack: store) as context:
        yield context
    store.close()


def test_a_record_from_before_the_swap_does_not_take_the_job_down(rack, old):
    before = light(rack)
    with pytest.raises(
        RefusedError, match="the light shows rank 1 of finetune on s3-gpu0, but the record has it on s1-gpu0"
    ) as refused:
        plan_fabric(old, "prototype")
    assert "lumctl store adopt prototype" in refused.value.hint
    apply(old, plan_adopt(old, "prototype"))
    assert old.assignment()["finetune"] == SWAPPED
    assert old.known_cells("mesh") == {}
    assert light(rack) == before


def test_the_commands_say_so(rack, shell_of):
    """The command line: refused with 5 by what an operator would try, and adopted after a look."""
    lumctl = shell_of(rack.inventory.path, rack.folder / "sim")
    assert "lumctl store adopt prototype --target sim" in lumctl("fabric", "apply", "--yes", code=5).stderr
    dry = lumctl("store", "adopt", "--dry-run", code=0)
    assert "finetune rank 1: s1-gpu0 by the inventory (there is no record) -> s3-gpu0 by the light" in " ".join(
        dry.stdout.split()
    )
    lumctl("store", "adopt", code=2)  # nobody can be asked
    adopted = lumctl("store", "adopt", "prototype", "--target", "sim", "--yes", "-o", "json", code=0)
    assert json.loads(adopted.stdout)["run"] == "adopt-0001"
