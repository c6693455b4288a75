"""kill -9 at every boundary of the journal and at random instants: the rack is as planned, or as it was before."""

import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
from crash_assertions import VICTIMS, WAYS, WORKS, CrashAssertions
from crash_fixture import crash_rack_of

from lumctl.change.interrupts import LEASE_TERM_S
from lumctl.change.resumption import abort

INSTANTS, FEW_INSTANTS = 500, 12
FEW_MOMENTS = 1
SEED = 6


@pytest.fixture(scope="module")
def assertions(crash_rack, tmp_path_factory, campaign):
    """One crash rack; in a campaign two, side by side."""
    if not campaign:
        yield [CrashAssertions(crash_rack)]
        return
    with crash_rack_of(tmp_path_factory.mktemp("second")) as second:
        yield [CrashAssertions(crash_rack), CrashAssertions(second)]


@pytest.fixture(scope="module")
def moments(crash_rack):
    return {work: crash_rack.moments(work) for work in WORKS}


@pytest.fixture(scope="module")
def lasts_s(crash_rack):
    """How long an undisturbed run takes, of each kind."""

    def timed(work):
        plan = crash_rack.ready(work)
        began = time.monotonic()
        crash_rack.run(plan)
        return time.monotonic() - began

    return {work: timed(work) for work in WORKS}


def each(assertions, cases, suffer):
    """Have all crash racks suffer their share of some cases; what became of them."""

    def share(at):
        for case in cases[at :: len(assertions)]:
            try:
                suffer(assertions[at], *case)
            except Exception as error:
                error.add_note(f"the case was {case}, after {dict(assertions[at].outcomes)}")
                raise
        assert assertions[at].crash_rack.rack.store.first_break() is None

    for each_of in assertions:
        each_of.outcomes.clear()
    with ThreadPoolExecutor(len(assertions)) as pool:
        list(pool.map(share, range(len(assertions))))
    return sum((each_of.outcomes for each_of in assertions), start=type(assertions[0].outcomes)())


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("work", WORKS)
def test_a_kill_at_any_boundary(assertions, moments, sample, tell, work, victim) -> None:
    labels = moments[work]
    assert {"before commit of begin", "after commit of end"} <= set(labels)
    assert sum(label.startswith("before commit") for label in labels) >= 5
    ways = WAYS if victim == "kill-both" else WAYS[:1]
    cases = sample(
        [(work, victim, number, way) for number, way in product(range(1, len(labels) + 1), ways)], FEW_MOMENTS
    )
    outcomes = each(assertions, cases, CrashAssertions.at_moment)
    tell(f"{work}, {victim}, {len(labels)} moments: {dict(sorted(outcomes.items()))}")
    assert outcomes.total() == len(cases)


def test_a_kill_at_any_instant(assertions, lasts_s, sample, tell) -> None:
    dice = random.Random(SEED)  # noqa: S311 - the same instants in every campaign
    cases = []
    for _ in range(INSTANTS):
        work = dice.choice(WORKS)
        victim = dice.choice(("kill", "kill-both"))
        cases.append((work, victim, dice.uniform(0.0, lasts_s[work]), dice.choice(WAYS)))
    chosen = sample(cases, FEW_INSTANTS)
    outcomes = each(assertions, chosen, CrashAssertions.at_instant)
    tell(f"{len(chosen)} instants: {dict(sorted(outcomes.items()))}")
    assert outcomes.total() == len(chosen)


@pytest.mark.parametrize("act", ["resume", "abort"])
def test_a_kill_of_who_goes_on_with_a_cut_run(assertions, moments, sample, tell, act) -> None:
    """It is cut again, at any boundary, and then undone."""
    cut_at = moments["swap"].index("after act program") + 1

    def cut_again(each_of, number=None):
        crash_rack, store = each_of.crash_rack, each_of.crash_rack.rack.store
        plan = crash_rack.ready("swap")
        run = crash_rack.run(plan, at=cut_at, do="kill-both").run.id
        crash_rack.end_guards()
        ended = crash_rack.run(plan, clock=LEASE_TERM_S + 1, **{act: run}, at=number, do="kill-both")
        assert ended.status == (-signal.SIGKILL if number else 0)
        crash_rack.end_guards()
        each_of.require_honest()
        if store.runs.get(run).state == "running":
            with crash_rack.rack.another_context(now=lambda: time.time() + 2 * LEASE_TERM_S + 1) as later:
                assert later.observe().unfinished == (run,)
                abort(later, store.runs.get(run))
        state = store.runs.get(run).state
        each_of.require_free(later_s=2 * LEASE_TERM_S + 1)
        assert crash_rack.seen().differences(crash_rack.after if state == "done" else crash_rack.before) == {}
        each_of.outcomes[state] += 1

    cut_again(assertions[0])
    labels = (assertions[0].crash_rack.rack.folder / "moments").read_text().splitlines()
    assert "before commit of reopen" in labels
    boundaries = [(number,) for number, label in enumerate(labels, start=1) if "commit" in label]
    outcomes = each(assertions, sample(boundaries, 1), cut_again)
    tell(f"{act}, {len(boundaries)} boundaries: {dict(outcomes)}")
