"""kill -9 at every boundary of the journal and at random instants: the rack is as planned, or as it was before."""

import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
from fates import VICTIMS, WAYS, WORKS, Fates
from yard import yard_on

from lumctl.change.interrupts import LEASE_TERM_S
from lumctl.change.resumption import abort

INSTANTS, FEW_INSTANTS = 500, 12
FEW_MOMENTS = 1
SEED = 6


@pytest.fixture(scope="module")
def fates(yard, tmp_path_factory, campaign):
    """One yard; in a campaign two, side by side."""
    if not campaign:
        yield [Fates(yard)]
        return
    with yard_on(tmp_path_factory.mktemp("second")) as second:
        yield [Fates(yard), Fates(second)]


@pytest.fixture(scope="module")
def moments(yard):
    return {work: yard.moments(work) for work in WORKS}


@pytest.fixture(scope="module")
def lasts_s(yard):
    """How long an undisturbed run takes, of each kind."""

    def timed(work):
        plan = yard.ready(work)
        began = time.monotonic()
        yard.run(plan)
        return time.monotonic() - began

    return {work: timed(work) for work in WORKS}


def each(fates, cases, suffer):
    """Have all yards suffer their share of some cases; what became of them."""

    def share(at):
        for case in cases[at :: len(fates)]:
            try:
                suffer(fates[at], *case)
            except Exception as error:
                error.add_note(f"the case was {case}, after {dict(fates[at].outcomes)}")
                raise
        assert fates[at].yard.rack.store.first_break() is None

    for fate in fates:
        fate.outcomes.clear()
    with ThreadPoolExecutor(len(fates)) as pool:
        list(pool.map(share, range(len(fates))))
    return sum((fate.outcomes for fate in fates), start=type(fates[0].outcomes)())


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("work", WORKS)
def test_a_kill_at_any_boundary(fates, moments, sample, tell, work, victim) -> None:
    labels = moments[work]
    assert {"before commit of begin", "after commit of end"} <= set(labels)
    assert sum(label.startswith("before commit") for label in labels) >= 5
    ways = WAYS if victim == "kill-both" else WAYS[:1]
    cases = sample(
        [(work, victim, number, way) for number, way in product(range(1, len(labels) + 1), ways)], FEW_MOMENTS
    )
    outcomes = each(fates, cases, Fates.at_moment)
    tell(f"{work}, {victim}, {len(labels)} moments: {dict(sorted(outcomes.items()))}")
    assert outcomes.total() == len(cases)


def test_a_kill_at_any_instant(fates, lasts_s, sample, tell) -> None:
    dice = random.Random(SEED)  # noqa: S311 - the same instants in every campaign
    cases = []
    for _ in range(INSTANTS):
        work = dice.choice(WORKS)
        victim = dice.choice(("kill", "kill-both"))
        cases.append((work, victim, dice.uniform(0.0, lasts_s[work]), dice.choice(WAYS)))
    chosen = sample(cases, FEW_INSTANTS)
    outcomes = each(fates, chosen, Fates.at_instant)
    tell(f"{len(chosen)} instants: {dict(sorted(outcomes.items()))}")
    assert outcomes.total() == len(chosen)


@pytest.mark.parametrize("act", ["resume", "abort"])
def test_a_kill_of_who_goes_on_with_a_cut_run(fates, moments, sample, tell, act) -> None:
    """It is cut again, at any boundary, and then undone."""
    cut_at = moments["swap"].index("after act program") + 1

    def cut_again(fate, number=None):
        yard, store = fate.yard, fate.yard.rack.store
        plan = yard.ready("swap")
        run = yard.run(plan, at=cut_at, do="kill-both").run.id
        yard.end_guards()
        ended = yard.run(plan, clock=LEASE_TERM_S + 1, **{act: run}, at=number, do="kill-both")
        assert ended.status == (-signal.SIGKILL if number else 0)
        yard.end_guards()
        fate.require_honest()
        if store.runs.get(run).state == "running":
            with yard.rack.another_context(now=lambda: time.time() + 2 * LEASE_TERM_S + 1) as later:
                assert later.observe().unfinished == (run,)
                abort(later, store.runs.get(run))
        state = store.runs.get(run).state
        fate.require_free(later_s=2 * LEASE_TERM_S + 1)
        assert yard.seen().differences(yard.after if state == "done" else yard.before) == {}
        fate.outcomes[state] += 1

    cut_again(fates[0])
    labels = (fates[0].yard.rack.folder / "moments").read_text().splitlines()
    assert "before commit of reopen" in labels
    boundaries = [(number,) for number, label in enumerate(labels, start=1) if "commit" in label]
    outcomes = each(fates, sample(boundaries, 1), cut_again)
    tell(f"{act}, {len(boundaries)} boundaries: {dict(outcomes)}")
