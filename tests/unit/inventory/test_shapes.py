"""Shapes of meshes as an inventory writes them, meshes in files beside it, what is known of single PUCs and ports."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.inventory.geometry import Geometry, MeshData, Shape
from lumctl.inventory.load import load_inventory
from lumctl.inventory.problems import InventoryError, Problem
from lumctl.inventory.tables import as_data, rows_of

Write = Callable[[str | bytes], Path]
ProblemsOf = Callable[[str | bytes], tuple[Problem, ...]]

WRITTEN = "geometry: {columns: 3, rows: 2}"
TRIANGLE = """\
mesh: 1
name: triangle
pucs: 3
junctions:
  - [[0, 1, 0], [1, 0, 0]]
  - [[1, 1, 0], [2, 0, 0]]
  - [[2, 1, 0], [0, 0, 0]]
ports: [[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1], [2, 0, 1], [2, 1, 1]]
positions: [[0, 0, 1, 0], [1, 0, 0.5, 0.87], [0.5, 0.87, 0, 0]]
"""


@pytest.fixture
def beside(small: str, tmp_path: Path, write: Write) -> Callable[[str], Path]:
    """An inventory with a mesh in a file beside it."""

    def make(mesh: str) -> Path:
        (tmp_path / "tile.yaml").write_text(mesh)
        return write(small.replace(WRITTEN, "geometry: {mesh: tile.yaml}"))

    return make


@pytest.mark.parametrize(
    ("written", "expected", "counts"),
    [
        ("{columns: 3, rows: 2}", Geometry(3, 2), (27, 24)),
        ("{shape: parallelogram, columns: 3, rows: 2}", Geometry(3, 2), (27, 24)),
        ("{shape: hexagon, side: 3}", Geometry.hexagon(3), (72, 36)),
        ("{shape: square, columns: 4, rows: 3}", Geometry(4, 3, Shape.SQUARE), (31, 28)),
    ],
)
def test_a_mesh_has_the_shape_that_is_written(
    small: str, write: Write, written: str, expected: Geometry, counts: tuple[int, int]
) -> None:
    device = load_inventory(write(small.replace(WRITTEN, f"geometry: {written}"))).devices["mesh"]
    assert device.geometry == expected
    assert (expected.puc_count, device.port_count) == counts


def test_a_mesh_may_lie_in_a_file_of_its_own(beside: Callable[[str], Path]) -> None:
    device = load_inventory(beside(TRIANGLE)).devices["mesh"]
    assert device.geometry is not None
    assert device.geometry.data == MeshData(
        "triangle",
        3,
        ((2, 4), (6, 8), (10, 0)),
        (1, 3, 5, 7, 9, 11),
        (((0, 0), (1, 0)), ((1, 0), (0.5, 0.87)), ((0.5, 0.87), (0, 0))),
    )
    assert (device.geometry.name, device.geometry.puc_count, device.port_count) == ("triangle", 3, 6)


def test_what_may_be_left_out_of_a_mesh_file(beside: Callable[[str], Path]) -> None:
    device = load_inventory(beside("{mesh: 1, pucs: 3, junctions: [[[0, 1, 0], [1, 0, 0]]]}")).devices["mesh"]
    assert device.geometry is not None
    assert device.geometry.data == MeshData("tile", 3, ((2, 4),))
    assert device.port_count == 10


def test_the_digest_covers_the_mesh(beside: Callable[[str], Path]) -> None:
    before = load_inventory(beside(TRIANGLE)).digest
    assert load_inventory(beside(TRIANGLE)).digest == before
    assert load_inventory(beside(TRIANGLE.replace("name: triangle", "name: ring"))).digest != before


def test_devices_of_one_file_share_its_mesh_and_its_errors(small: str, tmp_path: Path, write: Write) -> None:
    other = "  - {id: m2, kind: mesh, driver: x, address: 'm:1', geometry: {mesh: tile.yaml}}\ntransponders:"
    text = small.replace(WRITTEN, "geometry: {mesh: tile.yaml}").replace("transponders:", other)
    (tmp_path / "tile.yaml").write_text(TRIANGLE)
    devices = load_inventory(write(text)).devices
    assert devices["m2"].geometry == devices["mesh"].geometry
    (tmp_path / "tile.yaml").write_text(TRIANGLE.replace("pucs: 3", "pucs: none"))
    with pytest.raises(InventoryError) as refused:
        load_inventory(write(text))
    assert len(refused.value.problems) == 1


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{columns: 3}", "16:15: key 'rows' is missing here: a parallelogram needs it"),
        ("{shape: hexagon}", "16:15: key 'side' is missing here: a hexagon needs it"),
        ("{shape: hexagon, side: 3, rows: 3}", "16:47: a hexagon has no 'rows', expected 'side'"),
        (
            "{shape: square, columns: 3, rows: 3, side: 3}",
            "16:58: a square has no 'side', expected 'columns' and",
        ),
        ("{shape: hexagn, side: 3}", "16:23: found 'hexagn', expected parallelogram, hexagon or square; did you mean"),
        ("{shape: hexagon, side: 33}", "16:38: found 33, expected at most 32"),
        ("{shape: hexagon, side: x}", "16:38: found 'x', expected a whole number"),
        ("{mesh: tile.yaml, rows: 3}", "16:39: found 'rows' as well as 'mesh', expected one of them"),
        ("{mesh: tile.yaml, shape: square}", "16:40: found 'shape' as well as 'mesh', expected one of them"),
        ("{mesh: absent.yaml}", "16:22: mesh absent.yaml cannot be read: No such file or directory"),
        ("{mesh: .}", "16:22: mesh . is not a file"),
    ],
)
def test_a_shape_that_cannot_be(small: str, problems_of: ProblemsOf, written: str, expected: str) -> None:
    (problem,) = problems_of(small.replace(WRITTEN, f"geometry: {written}"))
    assert f"rack.yaml:{expected}" in str(problem)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("mesh: 1", "mesh: 2", "1:7: found 2, expected 1"),
        ("mesh: 1\n", "", "1:1: key 'mesh' is missing here"),
        ("pucs: 3", "pucs: 0", "3:7: found 0, expected at least 1"),
        ("pucs: 3", "pucs: 3\npuks: 3", "4:1: key 'puks' is not known; did you mean 'pucs'?"),
        ("[1, 0, 0]]", "[1, 0, 0], [1, 1, 1]]", "5:5: found a list of length 3, expected at most 2"),
        ("[1, 0, 0]]", "[1, 0]]", "5:17: found a list of length 2, expected at least 3"),
        ("[1, 0, 0]]", "[1, 0, x]]", "5:24: found 'x', expected a whole number"),
        ("[1, 0, 0]]", "[1, 0, 2]]", "5:5: found end 0 and side 2 of PUC 1, expected 0 or 1 for both"),
        ("[1, 0, 0]]", "[3, 0, 0]]", "5:5: found PUC 3 end 0 side 0, expected PUCs 0 to 2"),
        ("[1, 0, 0]]", "[0, 0, 0]]", "5:5: PUC 0 is connected to itself"),
        (
            "[[1, 1, 0], [2",
            "[[1, 0, 0], [2",
            "6:5: PUC 1 end 0 side 0 is connected twice, first in junction 0 (from 0)",
        ),
        (", [2, 1, 1]]", "]", "8:8: PUC 2 end 1 side 1 is connected to nothing and is not here"),
        (", [2, 1, 1]]", ", [2, 1, 0]]", "8:64: PUC 2 end 1 side 0 is connected, so it is not a port"),
        ("[0.5, 0.87, 0, 0]", "[1, 1, 1, 1]", "9:46: both ends of PUC 2 have the same position"),
        ("[0.5, 0.87, 0, 0]", "[1, 1, 1, .inf]", "9:56: found '.inf', expected a number"),
        ("name: triangle", "name: [x]", "2:7: found a list, expected a text"),
        ("mesh: 1", "mesh: 1\nmesh: 1", "2:1: key 'mesh' occurs twice, first in line 1"),
        ("mesh: 1", "mesh: [", "3:5: not valid YAML"),
        (TRIANGLE, "[]", "1:1: found a list, expected a mapping with the keys mesh, pucs, junctions"),
        (TRIANGLE, "", "1:1: the file is empty"),
    ],
)
def test_a_mistake_in_a_mesh_file_is_one_line_with_its_place(
    beside: Callable[[str], Path], old: str, new: str, expected: str
) -> None:
    assert old in TRIANGLE
    with pytest.raises(InventoryError) as refused:
        load_inventory(beside(TRIANGLE.replace(old, new, 1)))
    problems = [str(problem) for problem in refused.value.problems]
    assert any(f"tile.yaml:{expected}" in problem for problem in problems), problems
    # A port list that was complete is short of a port that is free now, and that is told as well.
    assert len(problems) <= 2
    assert not any("\n" in problem for problem in problems)


def test_errors_of_the_inventory_come_before_those_of_the_mesh(beside: Callable[[str], Path]) -> None:
    path = beside(TRIANGLE.replace("pucs: 3", "pucs: three"))
    path.write_text(path.read_text().replace("memory_gib: 80", "memory_gib: much").replace("kind: ring", "kind: rong"))
    with pytest.raises(InventoryError) as refused:
        load_inventory(path)
    places = [(Path(p.file).name, p.mark and p.mark.line) for p in refused.value.problems]
    assert places == [("rack.yaml", 9), ("rack.yaml", 32), ("tile.yaml", 3)]


CONDITION = """\
    stuck: {4: cross}
    damaged: [7, 9]
    puc_loss_db: {11: 0.5}
    port_loss_db: {3: 1.5}
"""


def test_what_is_known_of_single_pucs_and_ports(small: str, write: Write) -> None:
    inventory = load_inventory(write(small.replace("    geometry:", f"{CONDITION}    geometry:")))
    device = inventory.devices["mesh"]
    assert (device.stuck, device.damaged) == ({4: "cross"}, {7, 9})
    assert (device.puc_loss_db, device.port_loss_db) == ({11: 0.5}, {3: 1.5})
    (row,) = rows_of(inventory, "devices", folded=True)
    shown = {key: row[key] for key in ("shape", "stuck", "damaged", "excess")}
    assert shown == {"shape": "3 x 2 cells", "stuck": "4 cross", "damaged": "7, 9", "excess": "PUC 11 0.5, port 3 1.5"}


def test_the_document_of_a_device_says_its_shape(beside: Callable[[str], Path]) -> None:
    (data,) = as_data(load_inventory(beside(TRIANGLE)))["devices"]
    assert data["geometry"]["shape"] == "given"
    assert data["geometry"]["data"]["junctions"] == [[2, 4], [6, 8], [10, 0]]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("damaged: [7, 27]", "17:18: found PUC 27, expected 0 to 26"),
        ("damaged: [-1]", "17:15: found -1, expected at least 0"),
        ("puc_loss_db: {27: 1}", "17:19: found PUC 27, expected 0 to 26"),
        ("puc_loss_db: {3: -1}", "17:22: found -1, expected at least 0"),
        ("port_loss_db: {24: 1}", "17:20: found port 24, expected 0 to 23"),
        ("port_loss_db: {x: 1}", "17:20: found 'x' as a key, expected a whole number"),
    ],
)
def test_numbers_beyond_the_shape_are_refused(small: str, problems_of: ProblemsOf, written: str, expected: str) -> None:
    (problem,) = problems_of(small.replace("rows: 2}", f"rows: 2}}\n    {written}"))
    assert f"rack.yaml:{expected}" in str(problem)


@pytest.mark.parametrize("key", ["damaged: [1]", "puc_loss_db: {1: 1}", "stuck: {1: bar}"])
def test_a_switch_has_no_pucs(small: str, problems_of: ProblemsOf, key: str) -> None:
    switch = f"  - {{id: s, kind: switch, driver: x, address: 's:1', port_count: 8, {key}}}\ntransponders:"
    (problem,) = problems_of(small.replace("transponders:", switch))
    assert "a switch has no PUCs that could" in problem.message


def test_a_switch_has_ports_that_lose_light(small: str, write: Write) -> None:
    switch = "  - {id: s, kind: switch, driver: x, address: 's:1', port_count: 8, port_loss_db: {7: 2}}\ntransponders:"
    assert load_inventory(write(small.replace("transponders:", switch))).devices["s"].port_loss_db == {7: 2}


def test_a_geometry_says_what_it_is_called() -> None:
    given = Geometry.given(MeshData("tile-a", 2, ()))
    shapes = [Geometry(9, 7), Geometry.hexagon(3), Geometry(4, 5, Shape.SQUARE), given]
    assert [shape.name for shape in shapes] == ["9x7", "hexagon:3", "square:4x5", "tile-a"]
    described = [shape.described for shape in shapes]
    assert described == ["9 x 7 cells", "hexagon of side 3", "4 x 5 squares", "tile-a"]


def test_data_that_differ_are_not_equal() -> None:
    data = MeshData("tile", 2, ((2, 4),))
    assert replace(data) == data
    assert replace(data, junctions=((2, 5),)) != data
