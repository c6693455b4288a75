import json
from random import Random

import pytest

from lumctl.errors import UsageError
from lumctl.fabric import MeshCondition, changes, mesh, route, trace
from lumctl.fabric.documents import circuit_document, read_planned, states_document
from lumctl.fabric.matchings import all_to_all

SHAPE = mesh(3, 3)


def document_of(routes):
    return {
        "circuits": [circuit_document(each, MeshCondition()) for each in routes],
        "states": states_document(changes({}, routes)),
    }


def written(document):
    return json.loads(json.dumps(document))


def test_routes_are_read_back_as_they_were():
    routes = route(SHAPE, [(3, 15), (4, 9)], states={})
    (plan,) = read_planned(written(document_of(routes)), SHAPE)
    assert plan.circuits == ((3, 15), (4, 9))
    for each in routes:
        assert trace(SHAPE, plan.states, each.ports[0]).passes == each.passes


def test_matchings_are_read_back_one_by_one():
    found = all_to_all(SHAPE, 6, rng=Random(1))  # noqa: S311 - the same choices in every run
    document = {"matchings": [document_of(each.routes) for each in found.matchings]}
    plans = read_planned(written(document), SHAPE)
    assert [plan.circuits for plan in plans] == [tuple(r.ports for r in each.routes) for each in found.matchings]
    assert [dict(plan.states) for plan in plans] == [dict(each.states) for each in found.matchings]
    assert plans[1].name == "matching 1"


def test_loss_counts_each_pass_and_both_ports():
    (found,) = route(SHAPE, [(3, 15)], states={})
    condition = MeshCondition(puc_loss_db={found.pucs[0]: 1.5}, port_loss_db={15: 0.25})
    told = circuit_document(found, condition)
    assert told["loss_db"] == pytest.approx(2 * 1.0 + 0.25 + 0.25 * len(found.passes) + 1.5)


GOOD = {"ports": [3, 15], "pucs": [1, 2], "states": ["bar", "cross"]}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (None, "no routes"),
        ([], "no routes"),
        ({}, "circuits: expected a list"),
        ({"circuits": "3:4"}, "circuits: expected a list"),
        ({"circuits": [3]}, r"circuits\[0\]: expected a circuit"),
        ({"circuits": [GOOD | {"ports": [3]}]}, r"circuits\[0\].ports: found \[3\]"),
        ({"circuits": [GOOD | {"ports": [3, 3]}]}, r"circuits\[0\].ports"),
        ({"circuits": [GOOD | {"ports": [3, 28]}]}, r"circuits\[0\].ports"),
        ({"circuits": [GOOD | {"ports": [True, "a"]}]}, r"circuits\[0\].ports"),
        ({"circuits": [GOOD | {"pucs": [1]}]}, "as many states as pucs"),
        ({"circuits": [GOOD | {"pucs": None}]}, "as many states as pucs"),
        ({"circuits": [GOOD | {"pucs": [1, 99]}]}, "found PUC 99"),
        ({"circuits": [GOOD | {"pucs": [1, "2"]}]}, "found PUC '2'"),
        ({"circuits": [GOOD | {"states": ["bar", "open"]}]}, "found state 'open'"),
        ({"circuits": [GOOD, GOOD | {"ports": [4, 9], "states": ["bar", "bar"]}]}, "PUC 2 is required in both states"),
        ({"circuits": [], "states": ["bar"]}, "states: expected states by PUC"),
        ({"circuits": [], "states": {"x": "bar"}}, "states: found PUC 'x'"),
        ({"circuits": [], "states": {"1": 0}}, "states: found state 0"),
        ({"matchings": {}}, "matchings: expected a list"),
        ({"matchings": [GOOD]}, r"matchings\[0\].circuits"),
        ({"matchings": [{"circuits": [GOOD | {"pucs": [1, -1]}]}]}, r"matchings\[0\].circuits\[0\]: found PUC -1"),
    ],
)
def test_what_is_no_plan_is_refused_with_its_place(document, said):
    with pytest.raises(UsageError, match=said):
        read_planned(document, SHAPE)
