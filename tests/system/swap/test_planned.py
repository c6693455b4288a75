"""Plans beside the replacement of one accelerator, on a simulated rack: two jobs at once, round a PUC, and back."""

from lumctl.change import apply
from lumctl.swap import plan_reroute, plan_return, plan_rollback, plan_swap


def test_two_jobs_at_once_round_a_cell_and_back_and_nobody_else_s_cells_change(rack64) -> None:
    rack, context = rack64, rack64.context
    before, placed = rack.cells(), context.assignment()

    for victim in ("h02-gpu1", "h12-gpu0"):
        rack.sim.inject(victim, "gpu-lost")
    both = plan_swap(context, None, ["h02-gpu1", "h12-gpu0"])
    assert {r.job for r in both.replacements} == {"train-a", "train-b"}
    apply(context, both)
    for job in ("train-a", "train-b"):
        assert all(rack.ok_circuits(job))
    assert _changed(before, rack.cells()) == {(c.device, c.puc) for c in both.changes}

    standing = rack.cells()
    round_it = plan_reroute(context, "train-a", ["rail2/puc/40"])
    result = apply(context, round_it)
    changed = _changed(standing, rack.cells())
    assert changed == {(c.device, c.puc) for c in round_it.changes}
    assert not changed & {puc for c in round_it.keep for puc in c.pucs}
    assert {proof.circuit for proof in result.verified} == {c.id for c in round_it.add} != set()
    assert all(rack.ok_circuits("train-a"))
    assert context.assignment() != placed
    apply(context, plan_rollback(context, rack.store.runs.get(result.run)))
    assert rack.cells() == standing

    rack.clear()
    for job in ("train-a", "train-b"):
        apply(context, plan_return(context, job))
        assert all(rack.ok_circuits(job))
    assert context.assignment() == placed
    assert rack.store.first_break() is None
    timed = plan_swap(context, "train-a", ["h02-gpu1"], even_if_healthy=True)
    assert min(timed.measured.values()) >= 3


def _changed(before, after):
    return {(d, p) for d, cells in after.items() for p, state in cells.items() if before[d][p] is not state}
