"""The JSON Schema of the inventory, made from the document's model: ``python -m lumctl.inventory.schema`` prints it."""

import json
import sys

from pydantic.json_schema import GenerateJsonSchema

from lumctl.inventory.document import Document


def schema_text() -> str:
    """The JSON Schema as the file ``lumctl-inventory.schema.json`` holds it."""
    schema = {"$schema": GenerateJsonSchema.schema_dialect, **Document.model_json_schema(), "title": "lumctl inventory"}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
