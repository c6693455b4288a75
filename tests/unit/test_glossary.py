"""Rooms and the names that they export are the field's terms: in CONTRIBUTING's glossary, or plain English."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROOMS = sorted(path.parent for path in (ROOT / "lumctl").glob("*/__init__.py"))
PLAIN = set(
    re.findall(
        r"\w+",
        """
        act adopt agreed algorithm answer apply approved asked at break by cancelled changes comes commission condition
        current cuts data db document duration entry error exits fabric failed files find finish first folder free from
        hand head held hexagon inconsistent kinds loss losses lost needless objective of open over pair passed place
        progress question queued quiet record refused rejected require reroute rest result resume return role rollback
        running s serve served settings shape spent square state store stored swap tightest to trace unreachable
        unroutable waiting ways without
        """,
    )
)
"""Words of names that need no explanation: ordinary English, units, and names of rooms."""


def section(title: str) -> str:
    return CONTRIBUTING.partition(f"## {title}\n")[2].partition("\n## ")[0]


def exported(room: Path) -> tuple[str, ...]:
    """The names in ``__all__`` of a room's face."""
    for node in ast.parse((room / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "__all__":
            return tuple(ast.literal_eval(node.value))
    return ()


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def is_known(word: str, glossary: set[str]) -> bool:
    return word in PLAIN or word in glossary or word.removesuffix("s") in glossary


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_room_and_its_exported_names_are_known_words(room: Path) -> None:
    assert f"`{room.name}`" in section("The rooms")
    terms = [line.split("|")[1] for line in section("Glossary").splitlines() if line.startswith("| ")]
    glossary = {word for term in terms for word in words(term)}
    unknown = {name for name in exported(room) if not all(is_known(word, glossary) for word in words(name))}
    assert not unknown, f"put these words into the glossary, or choose a plainer name: {sorted(unknown)}"


def test_the_glossary_is_short() -> None:
    assert len(section("Glossary").splitlines()) <= 80
