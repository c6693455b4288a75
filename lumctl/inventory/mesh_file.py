"""A mesh in a file next to the inventory: its format and its meaning."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from lumctl.inventory.document_reader import read_whole
from lumctl.inventory.entry import Entry, Text
from lumctl.inventory.files import decoded, read_bytes
from lumctl.inventory.geometry import MOST_PUCS, MeshData, flaws
from lumctl.inventory.positions import MarkedDict, found, read_yaml
from lumctl.inventory.problems import Mark, Problems

WaveguideEnd = Annotated[list[Annotated[int, Field(ge=0, le=MOST_PUCS)]], Field(min_length=3, max_length=3)]
"""PUC, end (0 or 1), side (0 or 1)."""

Coordinate = Annotated[float, Field(ge=-1_000_000, le=1_000_000, allow_inf_nan=False)]

_KEYS: Mapping[str, str] = {"puc_count": "pucs"}
"""Fields of the data that have another key in the file."""


class MeshFile(Entry):
    """A mesh as data. See lumctl-inventory(5)."""

    mesh: Literal[1] = Field(description="Version of this format.")
    name: Text | None = Field(None, description="Default: the name of the file.")
    pucs: Annotated[int, Field(ge=1, le=MOST_PUCS)] = Field(description="Number of PUCs; they are numbered from 0.")
    junctions: list[Annotated[list[WaveguideEnd], Field(min_length=2, max_length=2)]] = Field(
        description="Pairs of waveguide ends that are connected, each written [PUC, END, SIDE]."
    )
    ports: list[WaveguideEnd] = Field([], description="All other waveguide ends, in the order of the port numbers.")
    positions: list[Annotated[list[Coordinate], Field(min_length=4, max_length=4)]] = Field(
        [], description="The positions of each PUC's ends: [x0, y0, x1, y1], to the right and downwards."
    )


def read_mesh(content: bytes, path: Path, problems: Problems) -> MeshData | None:
    """The mesh of a file; ``None`` if the file has errors. All errors are reported."""
    # Of its own: the marks are places in the mesh's file, not in the inventory.
    own = Problems(path)
    mesh = _read(content, path, own)
    problems.adopt(own)
    return None if own else mesh


def load_mesh(path: Path) -> MeshData:
    """The mesh of a file.

    Raises:
        InventoryError: the file cannot be read or has errors; the exception lists all of them with their places.
    """
    problems = Problems(path)
    content = read_bytes(path)
    data = None
    if isinstance(content, str):
        problems.add(None, content)
    else:
        data = read_mesh(content, path, problems)
    if data is None:
        raise problems.error()
    return data


def _read(content: bytes, path: Path, problems: Problems) -> MeshData | None:
    text = decoded(content, problems)
    written = read_yaml(text, problems) if text is not None else None
    if not isinstance(written, MarkedDict):
        if not problems:
            problems.add(Mark(1, 1), f"found {found(written)}, expected a mapping with the keys mesh, pucs, junctions")
        return None
    entry = read_whole(MeshFile, written, problems)
    if entry is None or problems or not _ends_are_well_numbered(entry, problems):
        return None
    data = MeshData(
        name=entry.name or path.stem,
        puc_count=entry.pucs,
        junctions=tuple((_terminal(a), _terminal(b)) for a, b in entry.junctions),
        ports=tuple(_terminal(end) for end in entry.ports),
        positions=tuple(((x0, y0), (x1, y1)) for x0, y0, x1, y1 in entry.positions),
    )
    for flaw in flaws(data):
        key = _KEYS.get(flaw.field, flaw.field)
        many = len(getattr(entry, key)) if flaw.item is not None else 0
        problems.add(entry.mark(key, flaw.item or 0, many), flaw.message)
    return data


def _ends_are_well_numbered(entry: MeshFile, problems: Problems) -> bool:
    """Whether every end and every side is 0 or 1. Otherwise a terminal would get the number of another one."""
    written = [(entry.mark("junctions", at, len(entry.junctions)), pair) for at, pair in enumerate(entry.junctions)]
    written += [(entry.mark("ports", at, len(entry.ports)), [end]) for at, end in enumerate(entry.ports)]
    for mark, ends in written:
        for puc, end, side in ends:
            if max(end, side) > 1:
                problems.add(mark, f"found end {end} and side {side} of PUC {puc}, expected 0 or 1 for both")
    return not problems


def _terminal(written: list[int]) -> int:
    puc, end, side = written
    return 4 * puc + 2 * end + side
