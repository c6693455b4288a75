"""What a new rack's meshes can hold: only what is possible is refused, and only what helps is offered."""

from random import Random

import pytest

from lumctl.cli.init_answers import intended_range
from lumctl.cli.new_rack import NewRack, spares_in
from lumctl.cli.new_rack_limits import meshes_possible, require_fit, room_hint, roomy_mesh, spares_lacking
from lumctl.errors import UsageError
from lumctl.fabric import shape
from lumctl.fabric.lane_ports import choose_ports
from lumctl.inventory.folded_names import expand


def rack(hosts, gpus, meshes, spares="none"):
    names = expand(hosts)
    made = NewRack(names, dict.fromkeys(names, gpus), meshes)
    made.spares = spares_in(spares, made)
    return made


@pytest.mark.parametrize("accelerators", [2, 3, 8, 9, 10, 12, 16, 38, 39, 40, 64, 250])
def test_the_proposed_mesh_has_ports_for_all_lanes_and_one_row_less_has_too(accelerators):
    name = roomy_mesh(accelerators)
    columns, rows = map(int, name.split("x"))
    assert columns - rows in {0, 1}
    assert name == "2x2" or 4 * (columns + rows - 1) + 4 >= 2 * accelerators > 4 * (columns + rows - 2) + 4


@pytest.mark.parametrize("accelerators", [4, 8, 12])
def test_on_the_proposed_mesh_a_spare_can_replace_every_rank(accelerators):
    layout = choose_ports(shape(roomy_mesh(accelerators)), accelerators - 1, 1, rng=Random(0))  # noqa: S311 - no secret
    assert layout.complete


def test_no_mesh_is_named_that_would_be_too_large():
    assert roomy_mesh(100_000) is None


@pytest.mark.parametrize(
    ("made", "mesh", "hint"),
    [
        (rack("n[1-6]", 2, 1), "hexagon:1", "--mesh 3x3, --meshes 2 or fewer hosts (3 at most)"),
        (rack("n[1-8]", 2, 2), "hexagon:1", "--mesh 2x2 or fewer hosts (6 at most)"),
        (rack("n[1-8]", 2, 1), "hexagon:1", "--mesh 4x4 or fewer hosts (3 at most)"),
        (rack("n1", 16, 1), "hexagon:1", "--mesh 4x4 or --meshes 3"),
        (rack("n1-6", 1, 1), "9x9", "did you mean --hosts 'n[1-6]'?"),
        (rack("n1", 1, 1), "9x9", "more hosts"),
        (rack("n1", 4, 4), "9x9", "more hosts or --meshes 2"),
        (rack("n[1-2]", 2, 2, "n2"), "9x9", "more hosts, --meshes 1 or fewer --spares (or none)"),
        (rack("n[1-2]", 4, 4, "n2"), "9x9", "more hosts, --meshes 2 or fewer --spares (or none)"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_helps(made, mesh, hint):
    with pytest.raises(UsageError) as refused:
        require_fit(made, shape(mesh))
    assert refused.value.hint == hint


def test_where_the_ports_suffice_a_larger_mesh_gives_room_to_the_routes():
    assert room_hint(rack("n[1-6]", 2, 1), shape("9x9")) == "a larger --mesh, --meshes 2 or fewer hosts"


def test_gpus_can_be_shared_out_so_that_each_mesh_has_a_ring_and_ports():
    assert meshes_possible(rack("n1", 6, 1)) == [1, 2, 3]
    assert meshes_possible(rack("n[1-6]", 4, 1), shape("hexagon:1")) == [4]
    assert meshes_possible(rack("n[1-3]", 4, 1, "n[2-3]")) == [1, 2]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (rack("n[1-6]", 2, 2, "n6-gpu1"), "rail0: add n6-gpu0 to --spares, or --meshes 1"),
        (rack("n[1-6]", 4, 4, "n5-gpu3"), "rail[0-2]: add n5-gpu[0-2] to --spares, or --meshes 1"),
        (rack("n[1-6]", 4, 4, "n5-gpu3,n6-gpu0"), "rail[1-2]: add n6-gpu[1-2] to --spares, or --meshes 2"),
        (rack("n[1-40]", 2, 2, "n40-gpu1"), "rail0: add n40-gpu0 to --spares"),
        (rack("n[1-2]", 3, 2, "n2-gpu0"), "rail1: --meshes 1"),
    ],
)
def test_a_mesh_without_spare_is_named(made, said):
    assert spares_lacking(made, shape("10x9")) == f"no spare at mesh {said}"


def test_every_mesh_has_a_spare_or_none_is_wanted():
    assert spares_lacking(rack("n[1-6]", 2, 2, "n6"), shape("9x9")) is None
    assert spares_lacking(rack("n[1-6]", 2, 2), shape("9x9")) is None


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        (["node1-6"], "node[1-6]"),
        (["r2-h01-16"], "r2-h[01-16]"),
        (["gpu-6-1"], None),
        (["node01-6"], None),
        (["node-6"], None),
        (["node1-6", "node7"], None),
    ],
)
def test_a_range_without_brackets_is_recognised(names, meant):
    assert intended_range(names) == meant
