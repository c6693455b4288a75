"""The JSON of amd-smi: a list with one mapping for each GPU, under ``gpu_data`` since ROCm 7.

A value is a number, a text with its unit, or a mapping of ``value`` and ``unit``; ``N/A`` is what there is none of.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

_NUMBER = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*[A-Za-z/%°]{0,5}\s*")
_NONE = "N/A"
_SCALE = {"GB": 1024.0, "GiB": 1024.0, "KB": 1 / 1024, "B": 1 / 2**20}
"""Units of memory in MiB: what amd-smi calls MB is 2^20 bytes."""


def entries(text: str) -> dict[int, Mapping[str, Any]] | None:
    """The mapping of each GPU by its number; ``None`` where the text holds no whole document of that form.

    Warnings may stand before the document.
    """
    begins = min((at for at in (text.find("\n["), text.find("\n{")) if at >= 0), default=-1)
    if not text.lstrip().startswith(("[", "{")) and begins >= 0:
        text = text[begins:]
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    listed = document.get("gpu_data") if isinstance(document, dict) else document
    if not isinstance(listed, list):
        return None
    found: dict[int, Mapping[str, Any]] = {}
    for entry in listed:
        gpu = entry.get("gpu") if isinstance(entry, dict) else None
        if not isinstance(gpu, int) or isinstance(gpu, bool) or gpu in found:
            return None
        found[gpu] = entry
    return found


def leaf(entry: Mapping[str, Any], path: str) -> Any:
    """The value at a path such as ``ecc.total_uncorrectable_count``; ``None`` if nothing is there."""
    here: Any = entry
    for name in path.split("."):
        if not isinstance(here, Mapping):
            return None
        here = here.get(name)
    return here.get("value") if isinstance(here, Mapping) and "value" in here else here


def number(entry: Mapping[str, Any], path: str) -> float | None:
    """The number at a path, memory in MiB; ``None`` if there is none."""
    value, unit = leaf(entry, path), leaf(entry, f"{path}.unit")
    if isinstance(value, str):
        read = _NUMBER.fullmatch(value)
        value = float(read[1]) if read else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) * _SCALE.get(unit, 1.0) if isinstance(unit, str) else float(value)


def whole(value: float | None) -> int | None:
    """A count."""
    return int(value) if value is not None and value >= 0 else None


def text(entry: Mapping[str, Any], path: str) -> str | None:
    """The text at a path; ``None`` if there is none."""
    value = leaf(entry, path)
    return value if isinstance(value, str) and value not in {"", _NONE} else None


def flag(entry: Mapping[str, Any], path: str, word: str) -> bool:
    """Whether the value at a path, or one of the list there, is a word."""
    value = leaf(entry, path)
    return value == word or (isinstance(value, list) and word in value)
