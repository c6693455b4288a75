"""Sixteen racks of 64 accelerators as one inventory: 1,024 accelerators, 256 hosts, 64 meshes, 32 jobs."""

import re
from pathlib import Path
from typing import Any

import yaml

RACK64 = Path(__file__).parents[3] / "inventories" / "rack64.yaml"
_NAMES = re.compile(r"(?<![\w}\]-])(?=h(?:\[|\d)|rail(?:\[|\d))")


def inventory_of(racks: int) -> str:
    """The text of an inventory of so many racks, each like the example."""
    one = yaml.safe_load(RACK64.read_text())
    lists = {key: [] for key, value in one.items() if isinstance(value, list)}
    for number in range(1, racks + 1):
        for key, gathered in lists.items():
            gathered += [_renamed(entry, f"r{number:02}") for entry in one[key]]
    for key in ("hosts", "devices"):
        for entry in lists[key]:
            entry["rack"] = str(entry.get("name") or entry["id"]).partition("-")[0]
    return yaml.safe_dump({**one, **lists, "racks": {f"r{n:02}": {} for n in range(1, racks + 1)}}, sort_keys=False)


def _renamed(value: Any, rack: str) -> Any:
    if isinstance(value, dict):
        named = {key: _renamed(each, rack) for key, each in value.items()}
        return named | ({"name": f"{value['name']}-{rack}"} if "links" in value else {})
    if isinstance(value, list):
        return [_renamed(each, rack) for each in value]
    return _NAMES.sub(f"{rack}-", value).replace("rack64", rack) if isinstance(value, str) else value
