"""How an inventory writes down the Prometheus exporters of hosts."""

from typing import Annotated, Any

from pydantic import Discriminator, Field, StringConstraints, Tag

from lumctl.inventory.entry import Entry, Text

VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"


def _form(value: Any) -> str:
    return "url" if isinstance(value, str) else "port"


PortOrUrl = Annotated[
    Annotated[Text, Tag("url")] | Annotated[Annotated[int, Field(ge=1, le=65535)], Tag("port")], Discriminator(_form)
]


class ExportersEntry(Entry):
    """Where the exporters of hosts answer: for each kind a port of the host's address, or a URL.

    In a URL {address} and {name} stand for the host's. Without any kind, dcgm and node are read at their usual ports.
    """

    dcgm: PortOrUrl | None = Field(None, description="dcgm-exporter, usually port 9400.")
    node: PortOrUrl | None = Field(None, description="node_exporter, usually port 9100.")
    amd: PortOrUrl | None = Field(None, description="AMD device-metrics-exporter, usually port 5000.")
    gpud: PortOrUrl | None = Field(None, description="gpud (its /v1/states), usually port 15132 with TLS.")
    user: Text | None = Field(None, description="User for HTTP Basic; without one, the secret is a bearer token.")
    secret_file: Text | None = Field(
        None, description="File that holds the secret, readable by its owner only; relative to this file, ~ allowed."
    )
    secret_variable: Annotated[str, StringConstraints(pattern=VARIABLE)] | None = Field(
        None, description="Environment variable that holds the secret; it overrides the file."
    )
    ca_file: Text | None = Field(
        None, description="Certificates of the authorities that sign the exporters' own; relative to this file."
    )
