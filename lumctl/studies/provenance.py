"""Where the rows of a study come from: its settings and seeds, versions of programs, and a digest of lumctl's code."""

import platform
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import lumctl
from lumctl.studies.study import Study, StudySettings

_SHOWS_ONLY = frozenset({"cli", "tui", "examples", "templates"})
"""Folders of the package that no study uses."""
_LIBRARIES = ("duckdb", "distributed", "highspy", "numpy", "scipy")


@cache
def code_digest() -> str:
    """A digest of the code and the data files that a study may use: other code may give other rows."""
    root, found = Path(lumctl.__file__).parent, sha256()
    for path in sorted(root.rglob("*")):
        place = path.relative_to(root)
        if path.is_file() and "__pycache__" not in place.parts and place.parts[0] not in _SHOWS_ONLY:
            found.update(f"{place.as_posix()}\n{sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def provenance(study: Study, settings: StudySettings) -> Mapping[str, Any]:
    """What a run of a study is made of; equal ones give equal rows."""
    seeds = settings.get("seeds")
    return {
        "study": study.name,
        "settings": {name: list(values) for name, values in settings.items()},
        **({"inputs": dict(study.inputs)} if study.inputs else {}),
        "seeds": None if seeds is None else list(range(int(seeds[0]))),
        "versions": {"lumctl": lumctl.__version__, "python": platform.python_version(), **_library_versions()},
        "code": code_digest(),
    }


def _library_versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def difference(mine: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """The first thing in which the second run was another than the first; ``None`` if nothing that changes rows was."""
    if mine["study"] != other["study"]:
        return f"study {other['study']}, not {mine['study']}"
    for name in {**mine["settings"], **other["settings"]}:
        one, two = (_values(each["settings"].get(name)) for each in (mine, other))
        if one != two:
            return f"{name}={two}, not {name}={one}"
    if (ours := mine.get("inputs")) != other.get("inputs"):
        return "another trace, or other columns of it" if "trace" in (ours or other["inputs"]) else "other measurements"
    one, two = (each["versions"]["lumctl"] for each in (mine, other))
    if one != two:
        return f"lumctl {two}, not {one}"
    return None if mine["code"] == other["code"] else "other code of lumctl"


def _values(values: Any) -> str:
    return "none" if values is None else ",".join(f"{each:g}" for each in values)
