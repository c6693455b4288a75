"""The JSON Schema in the repository is the one that the model makes."""

import json
from dataclasses import fields
from pathlib import Path

from lumctl.inventory.document import ProbesEntry, ThresholdsEntry
from lumctl.inventory.load import EXAMPLES, example
from lumctl.inventory.model import Thresholds
from lumctl.inventory.probe_times import PROBE_TIMES
from lumctl.inventory.schema import schema_text

CHECKED_IN = example("prototype").parent / "lumctl-inventory.schema.json"


def test_the_file_is_as_generated() -> None:
    again = f"python -m lumctl.inventory.schema > inventories/{CHECKED_IN.name}"
    assert CHECKED_IN.read_text() == schema_text(), f"run: {again}"


def test_unknown_keys_are_forbidden_everywhere() -> None:
    schema = json.loads(schema_text())
    models = [schema, *(model for model in schema["$defs"].values() if model["type"] == "object")]
    assert all(model["additionalProperties"] is False for model in models)
    assert len(models) > 10


def test_thresholds_are_those_of_the_model() -> None:
    assert list(ThresholdsEntry.model_fields) == [field.name for field in fields(Thresholds)]


def test_every_kind_of_probe_can_be_set() -> None:
    assert list(ProbesEntry.model_fields) == list(PROBE_TIMES)


def test_examples_name_the_schema() -> None:
    for name in EXAMPLES:
        first = example(name).read_text().split("\n", 1)[0]
        assert first == f"# yaml-language-server: $schema={Path(CHECKED_IN).name}"
