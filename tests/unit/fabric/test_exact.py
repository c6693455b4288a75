"""The exact answers against brute force, and the router against the exact answers."""

import os
import random
import sys
from functools import cache
from itertools import combinations, count, product
from math import inf

import pytest

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.geometry import TURN, exits, trace
from lumctl.fabric.research import exact, integer_program
from lumctl.fabric.research.graph import graph
from lumctl.fabric.research.integer_program import useful
from lumctl.fabric.routing import Route, route
from lumctl.fabric.search import InconsistentFabricError, Unroutable
from lumctl.fabric.shapes import mesh

if os.environ.get("LUMCTL_REQUIRE_SYSTEM_PARTS") != "1":
    pytest.importorskip("highspy", reason="HiGHS is not installed: pip install 'lumctl[optimal]'")

CAMPAIGN = bool(os.environ.get("LUMCTL_CAMPAIGN"))
SEED = int(os.environ.get("LUMCTL_CAMPAIGN_SEED", "3"))
BAR, CROSS = PucState.BAR, PucState.CROSS


def seeded(seed):
    return random.Random(seed)  # noqa: S311 - the same choices in every run


@cache
def settings(columns, rows):
    """Every setting of a small mesh: its states, and the trace of every port."""
    found = mesh(columns, rows)
    made = []
    for setting in product((BAR, CROSS), repeat=found.puc_count):
        states = dict(enumerate(setting))
        made.append((states, [trace(found, states, port) for port in range(found.port_count)]))
    return made


def best_by_trying(shape, demands, allowed=lambda _states, _ways: True):
    """The fewest passes in all, and the fewest on the longest way, over all settings; ``inf`` if none serves."""
    total = longest = inf
    for states, traces in settings(*shape):
        if all(traces[a].exit == b for a, b in demands):
            ways = [traces[a] for a, _ in demands]
            if allowed(states, ways):
                lengths = [len(way.passes) for way in ways]
                total, longest = min(total, sum(lengths)), min(longest, max(lengths))
    return total, longest


def assert_as_tried(shape, demands, allowed, **limits):
    total, longest = best_by_trying(shape, demands, allowed)
    question = mesh(*shape), demands
    least = exact.solve(*question, **limits)
    bound = exact.lower_bound(*question, **limits)
    assert bound.alone <= bound.value <= total
    if total == inf:
        assert (least.status, least.routes, least.bound, least.gap) == ("infeasible", (), inf, None)
        assert exact.solve(*question, **limits, objective="longest").status == "infeasible"
        assert exact.solve(*question, **limits, objective="feasible").status == "infeasible"
        return
    assert (least.status, least.total, least.bound, least.gap) == ("optimal", total, total, 0)
    assert [found.ports for found in least.routes] == demands
    assert exact.solve(*question, **limits, objective="feasible").total >= total
    shortest = exact.solve(*question, **limits, objective="longest")
    assert (shortest.status, shortest.longest, shortest.bound, shortest.gap) == ("optimal", longest, longest, 0)


def whatever(_states, _ways):
    return True


def test_one_cell_is_answered_as_by_trying_all_settings():
    pairs = list(combinations(range(mesh(1, 1).port_count), 2))
    for pair in pairs:
        assert_as_tried((1, 1), [pair], whatever)
    several = [list(demands) for size in (2, 3) for demands in combinations(pairs, size)]
    several = [demands for demands in several if len({port for pair in demands for port in pair}) == 2 * len(demands)]
    for demands in seeded(4).sample(several, 120):
        assert_as_tried((1, 1), demands, whatever)


def drawn(rng, found, _stuck, most):
    """Demands between random ports: any number up to ``most``."""
    ends = rng.sample(range(found.port_count), 2 * rng.randint(1, most))
    return list(zip(ends[::2], ends[1::2], strict=True))


def carried(rng, found, stuck, most):
    """Demands that a random setting carries, so that there is an answer however many they are."""
    states = {puc: rng.choice((BAR, CROSS)) for puc in range(found.puc_count)} | stuck
    pairs = [(a, b) for a, b in exits(found, states).items() if a < b]
    return rng.sample(pairs, rng.randint(1, most))


def jammed(rng, found, most):
    return {puc: rng.choice((BAR, CROSS)) for puc in rng.sample(range(found.puc_count), rng.randint(1, most))}


@pytest.mark.parametrize("kind", ["whole", "stuck", "damaged", "blocked"])
def test_two_cells_are_answered_as_by_trying_all_settings(kind):
    rng, shape = seeded(5), (2, 1)
    found = mesh(*shape)
    for number in range(20):
        stuck = jammed(rng, found, 3) if kind == "stuck" else {}
        demands = carried(rng, found, stuck, 4) if number % 2 else drawn(rng, found, stuck, 4)
        if kind == "stuck":
            assert_as_tried(shape, demands, lambda states, _, stuck=stuck: stuck.items() <= states.items(), stuck=stuck)
        elif kind == "damaged":
            broken = set(rng.sample(range(found.puc_count), 2))
            assert_as_tried(
                shape,
                demands,
                lambda _, ways, broken=broken: all(broken.isdisjoint(way.pucs) for way in ways),
                damaged=broken,
            )
        elif kind == "blocked":
            blocked = set(rng.sample(range(found.port_count), 2))
            allowed = all(blocked.isdisjoint(pair) for pair in demands)
            assert_as_tried(shape, demands, lambda _, __, allowed=allowed: allowed, blocked_ports=blocked)
        else:
            assert_as_tried(shape, demands, whatever)


def test_live_circuits_are_left_as_they_are():
    rng, shape = seeded(6), (2, 1)
    found = mesh(*shape)
    tried = 0
    for _ in range(20):
        states = {puc: rng.choice((BAR, CROSS)) for puc in range(found.puc_count)}
        a = rng.randrange(found.port_count)
        way = trace(found, states, a)
        free = [port for port in range(found.port_count) if port not in (a, way.exit)]
        ends = rng.sample(free, 4)
        held = dict(way.passes)
        live = [Route((a, way.exit), way.passes)]
        assert_as_tried(
            shape,
            [(ends[0], ends[1]), (ends[2], ends[3])],
            lambda states, _, held=held: held.items() <= states.items(),
            live=live,
        )
        tried += len(held) > 2
    assert tried > 5


def test_the_integer_program_decides_alone_what_the_relaxation_leaves_open(monkeypatch):
    rng = seeded(8)
    monkeypatch.setattr(exact, "chosen", lambda *_: None)
    for _ in range(20):
        assert_as_tried((2, 1), drawn(rng, mesh(2, 1), {}, 4), whatever)
    found = mesh(4, 4)
    for number in range(6):
        demands = carried(rng, found, {}, 4 + number)
        alone = exact.solve(found, demands)
        monkeypatch.undo()
        assert (alone.status, alone.total) == ("optimal", exact.solve(found, demands).total)
        monkeypatch.setattr(exact, "chosen", lambda *_: None)


def as_set(found, states, port):
    """The terminals at which light from a port enters its PUCs."""
    entered = [found.ports[port]]
    for _, state in trace(found, states, port).passes[:-1]:
        entered.append(found.peers[entered[-1] ^ TURN[state]])
    return tuple(entered)


def test_from_a_poor_routing_the_best_one_is_found(monkeypatch):
    rng, found, gained = seeded(11), mesh(3, 3), []
    for _ in range(12):
        states = {puc: rng.choice((BAR, CROSS)) for puc in range(found.puc_count)}
        demands = rng.sample([(a, b) for a, b in exits(found, states).items() if a < b], 7)
        best = exact.solve(found, demands)
        poor = tuple(as_set(found, states, a) for a, _ in demands)
        with monkeypatch.context() as patched:
            patched.setattr(exact, "chosen", lambda *_, poor=poor: poor)
            improved = exact.solve(found, demands)
            taken = exact.solve(found, demands, objective="feasible")
            stopped = exact.solve(found, demands, time_limit_s=1, clock=stopping(50))
        assert (improved.status, improved.total) == ("optimal", best.total)
        assert taken.total == sum(map(len, poor))
        assert stopped.bound <= best.total <= stopped.total
        gained.append(taken.total - best.total)
    assert sum(gain > 3 for gain in gained) > 3


def test_a_program_that_presolving_would_spoil_is_solved_to_the_end():
    ends = (8, 20, 14, 15, 4, 26, 9, 23, 21, 27, 5, 6, 0, 1, 12, 24, 34, 35, 13, 25, 22, 32, 2, 33)
    stuck = {48: BAR, 20: CROSS, 3: CROSS, 43: BAR}
    answer = exact.solve(mesh(5, 3), list(zip(ends[::2], ends[1::2], strict=True)), stuck=stuck)
    assert (answer.status, answer.total) == ("optimal", 86)


def test_a_blocked_port_is_neither_start_nor_goal():
    for blocked in (0, 1):
        assert exact.solve(mesh(2, 2), [(0, 1)], blocked_ports={blocked}).status == "infeasible"
    assert exact.solve(mesh(2, 2), [(0, 1)], blocked_ports={5}).total == 1


def test_a_circle_beside_a_way_is_dropped():
    found = mesh(3, 3)
    usable = graph(found, [(4, 5)], stuck={}, damaged=(), live=(), blocked_ports=())
    (way,) = integer_program.solve_arcs(usable, [useful(usable, 0, [0.0] * usable.wires, 0.0)], seconds=9).ways
    start, goal = usable.demands[0]
    turned = {at: at ^ 2 for at in range(len(found.peers))}  # everything in bar: light circles in every inner cell
    assert integer_program._walked(usable, start, goal, turned) == way


def test_neighbouring_ports_at_a_sharp_corner_have_no_way():
    found = mesh(9, 9)
    answer = exact.solve(found, [(0, 74)])
    assert (answer.status, answer.bound) == ("infeasible", inf)
    # Why: the two PUCs of the corner alone decide it. In each of their four settings one of the two lights leaves
    # before it meets any other PUC, and not where it is wanted.
    corner = {found.ports[0] >> 2, found.ports[74] >> 2}
    for setting in product((BAR, CROSS), repeat=2):
        states = dict(zip(sorted(corner), setting, strict=True))
        ways = [trace(found, states, port) for port in (0, 74)]
        assert any(corner.issuperset(way.pucs) and {way.port, way.exit} != {0, 74} for way in ways)
    ports = [*range(4), *range(34, 42), *range(72, 76)]
    alone = [pair for pair in combinations(ports, 2) if exact.lower_bound(found, [pair]).value == inf]
    assert alone == [(0, 74), (1, 75), (36, 38), (37, 39)]


def test_sixteen_circuits_at_once_on_the_large_mesh():
    found = mesh(9, 9)
    ends = seeded(1).sample([*range(4, 36), *range(42, 72)], 32)
    demands = list(zip(ends[::2], ends[1::2], strict=True))
    answer = exact.solve(found, demands)
    bound = exact.lower_bound(found, demands)
    heuristic = sum(len(one.passes) for one in route(found, demands, states={}))
    assert answer.status == "optimal"
    assert bound.alone < bound.value <= answer.total <= heuristic
    assert bound.method == "linear relaxation"


def stopping(after):
    """A clock that stands until it was asked so often, and then says that the time is long up."""
    asked = count()
    return lambda: 0.0 if next(asked) < after else 1e6


@pytest.mark.parametrize("after", range(1, 60))
def test_when_time_is_up_it_is_said_how_far_it_came(after):
    found = mesh(3, 3)
    demands = [(3, 19), (5, 22), (7, 24), (9, 14)]
    best = exact.solve(found, demands)
    stopped = exact.solve(found, demands, time_limit_s=60, clock=stopping(after))
    assert stopped.seconds in {0.0, 1e6}
    assert stopped.bound <= best.total
    if stopped.status == "gave-up":
        assert (stopped.routes, stopped.gap) == ((), None)
    else:
        assert stopped.status in {"optimal", "feasible"}
        assert stopped.total == pytest.approx(stopped.bound * (1 + stopped.gap))
        assert (stopped.status == "optimal") == (stopped.gap == 0)
    bound = exact.lower_bound(found, demands, clock=stopping(after))
    assert bound.alone <= bound.value <= best.total


def test_no_time_at_all_gives_the_trivial_bound():
    demands = [(3, 19), (5, 22), (7, 24), (9, 14)]
    answer = exact.solve(mesh(3, 3), demands, time_limit_s=0)
    bound = exact.lower_bound(mesh(3, 3), demands, time_limit_s=0)
    assert answer.status == "gave-up"
    assert answer.bound == bound.value == bound.alone
    assert bound.method.endswith("stopped early")


def test_no_demands_need_no_routes():
    for objective in exact.ExactObjective:
        answer = exact.solve(mesh(1, 1), [], objective=objective)
        assert (answer.status, answer.routes, answer.total, answer.gap) == ("optimal", (), 0, 0)


def test_bad_questions_are_refused():
    found = mesh(2, 2)
    with pytest.raises(UsageError, match="port 20 is not on the mesh"):
        exact.solve(found, [(0, 20)])
    with pytest.raises(UsageError, match="port 3 is used twice"):
        exact.lower_bound(found, [(0, 3), (3, 4)])
    with pytest.raises(UsageError, match="PUC 19 is not on the mesh"):
        exact.solve(found, [(0, 3)], damaged={19})
    way = trace(found, {}, 0)
    with pytest.raises(InconsistentFabricError, match="it is in the other state"):
        exact.solve(found, [], live=[Route((0, way.exit), way.passes)], stuck={way.pucs[0]: CROSS})


def test_without_the_solver_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(UsageError, match="not installed") as refused:
        exact.solve(mesh(2, 2), [(4, 9)])
    assert refused.value.hint == "pip install 'lumctl[optimal]'"


def by_router(found, demands, stuck):
    try:
        return sum(len(one.passes) for one in route(found, demands, states={}, stuck=stuck)), False
    except Unroutable as refused:
        return None, refused.proven


@pytest.mark.timeout(3600 if CAMPAIGN else 60)
@pytest.mark.parametrize("kind", [drawn, carried])
def test_the_router_against_the_exact_answer(kind):
    """So many demands are put to both; then more to the router alone, until it was asked for as many feasible ones."""
    rng, rounds = seeded(SEED), 1000 if CAMPAIGN else 20
    feasible, missed = 0, []
    for number in count():
        if number >= rounds and feasible >= rounds:
            break
        found = mesh(rng.randint(1, 5), rng.randint(1, 5))
        stuck = jammed(rng, found, max(1, found.puc_count // 10)) if rng.random() < 1 / 3 else {}
        demands = kind(rng, found, stuck, found.port_count // 2)
        told = f"demand {number} on {found.name}: {demands}, stuck {stuck}"
        answer = exact.solve(found, demands, stuck=stuck)
        assert answer.status in {"optimal", "infeasible"}, told
        if answer.status == "infeasible":
            assert number >= rounds or by_router(found, demands, stuck)[0] is None, told
            continue
        total, proven = by_router(found, demands, stuck)
        assert not proven, told
        assert total is None or total >= answer.total, told
        feasible += 1
        missed += [told] if total is None else []
    assert len(missed) <= feasible * 0.005, f"{len(missed)} of {feasible} feasible demands were missed: {missed}"


def least_worst_by_trying(shape, demands, condition):
    """The loss of the worst circuit, in dB, of the setting in which it is least; ``inf`` if none serves."""
    least = inf
    for _, traces in settings(*shape):
        if all(traces[a].exit == b for a, b in demands):
            worst = max(condition.loss_db(pair, traces[pair[0]].pucs) for pair in demands)
            least = min(least, worst)
    return least


def test_the_worst_loss_in_db_is_the_least_with_the_excess_of_single_pucs_and_ports():
    rng, shape = seeded(9), (2, 1)
    found = mesh(*shape)
    for _ in range(15):
        demands = carried(rng, found, {}, 2)
        few = exact.solve(found, demands)
        passed = sorted({puc for one in few.routes for puc in one.pucs})
        condition = MeshCondition(
            puc_loss_db={puc: rng.choice((0.1, 0.75, 3.0)) for puc in rng.sample(passed, min(3, len(passed)))},
            port_loss_db={port: rng.choice((0.5, 4.0)) for port in rng.sample(range(found.port_count), 4)},
        )
        least = least_worst_by_trying(shape, demands, condition)
        answer = exact.solve(found, demands, objective="loss", losses=condition)
        assert answer.status == "optimal"
        assert answer.worst_loss_db == pytest.approx(least)
        assert answer.bound == pytest.approx(least)
        routed = max(condition.loss_db(one.ports, one.pucs) for one in answer.routes)
        assert routed == pytest.approx(least)


def test_the_least_loss_goes_around_dear_pucs_that_the_fewest_pucs_pass():
    found, demands = mesh(4, 4), [(3, 21), (6, 28)]
    few = exact.solve(found, demands)
    dear = {puc: 2.0 for one in few.routes for puc in one.pucs[1:-1]}
    condition = MeshCondition(puc_loss_db=dear)
    answer = exact.solve(found, demands, objective="loss", losses=condition)
    assert answer.status == "optimal"
    assert answer.worst_loss_db < max(condition.loss_db(one.ports, one.pucs) for one in few.routes)


@pytest.mark.parametrize("objective", ["total", "loss", "longest", "feasible"])
@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_it_is_never_worse_than_the_routes_it_starts_from(objective, seconds):
    rng, found = seeded(10), mesh(3, 3)
    for _ in range(4):
        demands = carried(rng, found, {}, 6)
        start = route(found, demands, states={})
        answer = exact.solve(found, demands, objective=objective, start=start, time_limit_s=seconds)
        assert answer.status in {"optimal", "feasible"}
        assert answer.total <= sum(len(one.passes) for one in start) or objective in {"loss", "longest"}
        assert max(map(len, (one.passes for one in answer.routes))) <= max(len(one.passes) for one in start) or (
            objective == "total"
        )
        assert answer.bound <= answer.value
        if seconds:
            assert answer.status == "optimal"


def test_an_interrupt_ends_the_solver_and_goes_on_up():
    class Solving:
        running = True

        def is_alive(self):
            return self.running

        def join(self, timeout=None):
            if self.running and timeout is not None:
                raise KeyboardInterrupt

    class Solver:
        HandleUserInterrupt = True
        solving = Solving()

        def setOptionValue(self, *_):  # noqa: N802 - HiGHS's own name
            pass

        def getRunTime(self):  # noqa: N802
            return 0.0

        def startSolve(self):  # noqa: N802
            return self.solving

        def cancelSolve(self):  # noqa: N802
            self.solving.running = False

    solver = Solver()
    with pytest.raises(KeyboardInterrupt):
        integer_program.run(solver, 60.0)
    assert not solver.solving.running
