"""A spare must carry every phase of a job, not only the one whose light is on."""

from types import SimpleNamespace

import pytest

from lumctl.errors import RefusedError
from lumctl.inventory.load import example, inventory_from
from lumctl.inventory.wiring import FREE, initial_assignment, own_cells
from lumctl.swap import draft
from lumctl.swap.choice import choose
from lumctl.swap.lane_moves import lane_choices, parse_avoided

TEXT = example("rails").read_text()
SECOND_LANES = """\
  - id: h[1-4]-gpu0-b
    accelerator: h[1-4]-gpu0
    interface: eth4
    device: rail0
    port: [5, 6, 7, 8]
"""


def with_two_lanes():
    """The rack in which rail0's accelerators have a second lane, except the spare, and one phase is a ring."""
    text = TEXT.replace("\njobs:", f"{SECOND_LANES}\njobs:").replace("_count: 8", "_count: 16")
    ring = "        - {kind: ring, ranks: [0, 2, 6, 4]}\n    order:"
    return inventory_from(
        text.replace("          pairs: [[0, 4], [1, 5], [2, 6], [3, 7]]\n    order:", ring)
        .replace("      gradients:\n        - kind: pairs\n", "      gradients:\n")
        .encode(),
        example("rails"),
    )


def states(inventory):
    held = {rail: dict.fromkeys(own_cells(inventory, inventory.devices[rail]), FREE) for rail in ("rail0", "rail1")}
    return {rail: {**cells, 0: "1", 2: "3"} for rail, cells in held.items()}


def test_a_spare_with_too_few_lanes_for_a_later_phase_is_not_taken(observe):
    inventory = with_two_lanes()
    with pytest.raises(RefusedError) as refused:
        choose(observe(inventory), states(inventory), ["h1-gpu0"])
    assert "needs lane 1 of h5-gpu0, which has 1" in refused.value.message


def test_a_lane_that_a_later_phase_needs_takes_no_circuit_of_another_lane(observe):
    inventory = with_two_lanes()
    avoided = parse_avoided(inventory, ["h1-gpu0-a"])
    with pytest.raises(RefusedError) as refused:
        list(lane_choices(observe(inventory), avoided, (), ["train"]))
    assert "h1-gpu0-b is needed in another phase of the job" in refused.value.message


def test_a_spare_that_carries_every_phase_is_taken(observe):
    inventory = inventory_from(TEXT.encode(), example("rails"))
    choice = choose(observe(inventory), states(inventory), ["h1-gpu0"])
    assert [each.spare for each in choice.replacements] == ["h5-gpu0"]
    assert set(choice.paths.writes) == {"rail0"}


def test_a_device_that_only_a_later_phase_uses_must_be_certain_too(monkeypatch):
    text = TEXT.replace("pairs: [[0, 2], [1, 3], [4, 6], [5, 7]]", "pairs: [[0, 2], [4, 6]]")
    inventory = inventory_from(text.encode(), example("rails"))
    known = {"rail0": {0: "1"}, "rail1": {}}
    context = SimpleNamespace(
        inventory=inventory, assignment=lambda: initial_assignment(inventory), known_cells=known.get
    )
    monkeypatch.setattr(draft, "uncertain", lambda *given: RefusedError(f"not certain: {given[-1]}"))
    with pytest.raises(RefusedError, match="not certain: rail1"):
        draft.certain_states(context, "rails", ["train"])
    known["rail1"] = {0: FREE}
    assert draft.certain_states(context, "rails", ["train"]) == known
