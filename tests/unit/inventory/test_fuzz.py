"""Whatever is done to a valid file: it loads, or the error is an inventory error."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.errors import UsageError
from lumctl.fabric.shapes import from_data
from lumctl.inventory.load import example, load_inventory

SEEDS = [example("prototype").read_bytes(), example("rack64").read_bytes()]
BITS = st.sampled_from(
    [b"[", b"]", b"{", b"}", b": ", b"\n", b"  ", b"- ", b"&a ", b"*ports_a", b"~", b"-1", b"1e999", b"999999",
     b"!!set ",
     b"'", b'"', b"\x00", b"\xff", b"0-7", b"[01-99]", b"{host}", b"{id}", b"true", b"[]", b"{}", b"kind", b"<<", b"/"]
)  # fmt: skip


INVENTORY = b"""\
lumctl: 1
racks: {r: }
hosts: [{name: h}]
devices: [{id: m, kind: mesh, driver: x, address: "m:1", geometry: {mesh: tile.yaml}}]
"""
MESH = b"""\
mesh: 1
pucs: 3
junctions:
  - [[0, 1, 0], [1, 0, 0]]
  - [[1, 1, 0], [2, 0, 0]]
ports: [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1], [2, 0, 1], [2, 1, 0], [2, 1, 1]]
positions: [[0, 0, 1, 0], [1, 0, 0.5, 0.87], [0.5, 0.87, 0, 0]]
"""


@pytest.fixture(scope="module")
def load() -> Iterator[Callable[[bytes], Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rack.yaml"

        def _load(content: bytes) -> Any:
            path.write_bytes(content)
            try:
                return load_inventory(path)
            except UsageError as error:
                return error.message

        yield _load


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), BITS | st.binary(max_size=4)), min_size=1, max_size=4),
)
def test_bytes_replaced_anywhere(
    load: Callable[[bytes], Any], seed: bytes, edits: list[tuple[float, int, bytes]]
) -> None:
    for where, length, new in edits:
        at = int(where * len(seed))
        seed = seed[:at] + new + seed[at + length :]
    assert load(seed)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(SEEDS), st.randoms(use_true_random=False), BITS)
def test_values_and_lines_moved_about(load: Callable[[bytes], Any], seed: bytes, random: Any, word: bytes) -> None:
    lines = seed.split(b"\n")
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(lines))
        match random.randrange(4):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, random.choice(lines))
            case 2:
                lines[at] = lines[at].partition(b":")[0] + b": " + word
            case _:
                lines[at] = lines[at] + b" " + word
    assert load(b"\n".join(lines))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), BITS | st.binary(max_size=3)), max_size=3))
def test_bytes_of_a_mesh_replaced_anywhere(edits: list[tuple[float, int, bytes]]) -> None:
    mesh = MESH
    for where, length, new in edits:
        at = int(where * len(mesh))
        mesh = mesh[:at] + new + mesh[at + length :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rack.yaml"
        path.write_bytes(INVENTORY)
        (path.parent / "tile.yaml").write_bytes(mesh)
        try:
            geometry = load_inventory(path).devices["m"].geometry
        except UsageError as error:
            refused = error.message
        else:
            assert geometry is not None
            assert from_data(geometry.data).port_count == geometry.port_count
            return
    assert edits
    assert "tile.yaml" in refused
