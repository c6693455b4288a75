"""lumctl-inventory(5) is written by hand: it must not fall behind the model."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from lumctl.daemon.autopilot.policy import remarks, require_sound
from lumctl.inventory import document, policy_entries
from lumctl.inventory.load import load_inventory
from lumctl.inventory.mesh_file import MeshFile

PAGE = (Path(__file__).parents[3] / "man" / "lumctl-inventory.5").read_text().replace("\\-", "-")


def keys() -> Iterator[str]:
    for model in (*vars(document).values(), *vars(policy_entries).values(), MeshFile):
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from model.model_fields


@pytest.mark.parametrize("key", sorted(set(keys())))
def test_every_key_is_described(key: str) -> None:
    assert key in PAGE


def test_its_example_is_an_inventory(write: Callable[[str | bytes], Path]) -> None:
    example = PAGE.split(".ft CW\n")[1].split(".ft\n")[0]
    inventory = load_inventory(write(example))
    assert [len(inventory.hosts), len(inventory.transponders), len(inventory.jobs)] == [3, 6, 1]


def test_its_policies_fit_its_example_and_name_rules_that_there_are(write: Callable[[str | bytes], Path]) -> None:
    example, policies = (part.split(".ft\n")[0] for part in PAGE.split(".ft CW\n")[-2:])
    inventory = load_inventory(write(example + policies))
    require_sound(inventory)
    assert list(remarks(inventory)) == []
    assert [policy.how for policy in inventory.policies] == ["approve", "notify"]


def test_its_mesh_is_one(tmp_path: Path, small: str, write: Callable[[str | bytes], Path]) -> None:
    (tmp_path / "ring.yaml").write_text("mesh: 1" + PAGE.split("\nmesh: 1")[1].split("\n.fi")[0])
    inventory = load_inventory(write(small.replace("{columns: 3, rows: 2}", "{mesh: ring.yaml}")))
    assert inventory.devices["mesh"].port_count == 6
