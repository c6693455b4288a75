"""The JSON Schema of the inventory, made from the document's model: ``python -m lumctl.inventory.schema`` prints it."""

import json
import sys
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from lumctl.inventory.document import Document
from lumctl.inventory.job_entries import JobHookEntry, OtherHookEntry
from lumctl.inventory.job_kinds import UNNAMED, entry_of, kinds

OWN = "lumctl"
"""The package whose kinds of job control the schema describes. Only their own plug-ins read the kinds of others."""


def schema_text() -> str:
    """The JSON Schema in the file ``lumctl-inventory.schema.json``."""
    document = Document.model_json_schema()
    _describe_hooks(document["$defs"])
    schema = {"$schema": GenerateJsonSchema.schema_dialect, **document, "title": "lumctl inventory"}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _describe_hooks(models: dict[str, Any]) -> None:
    """In the schema, replace the generic hook by the settings of each kind of job control."""
    del models[OtherHookEntry.__name__]
    names = [JobHookEntry.__name__]
    for offer in kinds():
        if offer.distribution == OWN and offer.name not in UNNAMED and (entry := entry_of(offer.name)) is not None:
            described = entry.model_json_schema()
            models.update(described.pop("$defs", {}))
            models[described["title"]] = described
            names.append(described["title"])
    hooks = [{"$ref": f"#/$defs/{name}"} for name in names]
    for model in ("JobEntry", "JobControlEntry"):
        models[model]["properties"]["hook"]["anyOf"] = [*hooks, {"type": "null"}]
    filler = models["FillerEntry"]["properties"]["hook"]
    filler.pop("oneOf", None)
    filler["anyOf"] = hooks


if __name__ == "__main__":
    sys.stdout.write(schema_text())
