"""The answers that ``lumctl inventory init`` gets, from options or prompts, and the checks of each single answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumctl.cli.fabric_mesh import mesh_named
from lumctl.errors import UsageError
from lumctl.inventory.folded_names import NAME, FoldError, expand, expand_list
from lumctl.printable import counted, printable

if TYPE_CHECKING:
    from lumctl.fabric import Mesh

MOST_GPUS = 64
# ``int()`` refuses a text of thousands of digits with an error of its own.
_MOST_DIGITS = 9
NO_SPARES = "none"
SSH_DEFAULT = "-"
"""The answer that leaves the SSH user to ssh's own configuration."""
_ADDRESS = re.compile(r"(?:\{[a-z]+\}|[A-Za-z0-9_.:,\[\]-])+")
_IPV4 = re.compile(r"((?:[0-9]{1,3}\.){3})([0-9]{1,3})")
_NUMBERED = re.compile(r"(.*?)([0-9]+)-([0-9]+)")
# A comma in brackets belongs to the folded name: h[01,03].
_COMMAS = re.compile(r",(?![^\[\]]*\])")
_NUMBERS_AND_NAME = re.compile(r"[0-9.]+\{name\}")
_PLACEHOLDERS = re.compile(r"\{[a-z]+\}")


@dataclass(frozen=True)
class InitAnswers:
    """The operator's answers; ``None`` for an option that was not given."""

    hosts: str | None
    gpus: str | None
    mesh: str | None
    meshes: str | None = None
    spares: str | None = None
    job: str | None = None
    address: str | None = None
    user: str | None = None


def names_in(text: str, what: str) -> list[str]:
    """Expand folded names, separated by commas.

    Raises:
        UsageError: the names cannot be expanded, or a name occurs twice.
    """
    try:
        names = [name for part in _COMMAS.split(text) for name in expand(part.strip())]
    except FoldError as error:
        raise UsageError(f"{what}: {error}", hint="such as h[01-16]") from None
    for at, name in enumerate(names):
        if not NAME.fullmatch(name) and len(name.split()) > 1:
            raise UsageError(f"{what}: {name!r} is not a name", hint=f"commas separate names: {','.join(name.split())}")
        name_in(name, what)
        if name in names[:at]:
            raise UsageError(f"{what}: {name!r} occurs twice")
    return names


def name_in(text: str, what: str) -> str:
    """A name that a component of an inventory can have.

    Raises:
        UsageError: it cannot be one.
    """
    if not NAME.fullmatch(text):
        raise UsageError(f"{what}: {text!r} is not a name: use letters, digits, -, _ and .")
    return text


def intended_range(names: Sequence[str]) -> str | None:
    """The folded name that was probably meant by a single host such as ``node1-6``."""
    found = _NUMBERED.fullmatch(names[0]) if len(names) == 1 else None
    if found is None or int(found[2]) >= int(found[3]):
        return None
    folded = f"{found[1]}[{found[2]}-{found[3]}]"
    try:
        expand(folded)
    except FoldError:
        return None
    return folded


def address_in(text: str, what: str, hosts: Sequence[str]) -> str:
    """The addresses of the hosts, checked: a template, or as many folded addresses as there are hosts.

    Raises:
        UsageError: a character cannot be in an address, or there are not as many addresses as hosts.
    """
    require_address(text, what)
    if "{name}" in text:
        if _NUMBERS_AND_NAME.fullmatch(text) and not all(host.isdecimal() for host in hosts):
            raise UsageError(
                f"{what}: {text} is no address of {hosts[0]}", hint="such as 10.0.0.[1-4], one for each host"
            )
        return text
    try:
        count = len(expand_list(text))
    except FoldError as error:
        raise UsageError(f"{what}: {error}", hint="such as 10.0.0.[1-4]") from None
    if len(hosts) > 1 and count == 1:
        meant = _addresses_meant(text, len(hosts))
        raise UsageError(f"{what}: {len(hosts)} hosts would share the address {text}", hint=f"did you mean {meant}?")
    if hosts and count != len(hosts):
        addressed = f"{count} addresses for {counted(len(hosts), 'hosts')}"
        raise UsageError(f"{what}: {text} are {addressed}", hint="one for each host")
    return text


def _addresses_meant(text: str, count: int) -> str:
    """The addresses of so many hosts that one address probably stands for."""
    if (ipv4 := _IPV4.fullmatch(text)) is not None:
        return f"{ipv4[1]}[{ipv4[2]}-{int(ipv4[2]) + count - 1}]"
    return f"{{name}}.{text}" if _PLACEHOLDERS.sub("", text) == text else _PLACEHOLDERS.sub("{name}", text)


def require_address(text: str, what: str) -> None:
    """Refuse a text that is neither an address nor a template of addresses.

    Raises:
        UsageError: the text has a character that addresses cannot have.
    """
    if not _ADDRESS.fullmatch(text):
        raise UsageError(f"{what}: found {text!r}, expected an address", hint="such as {name}.example.org")


def mesh_in(text: str, what: str) -> "Mesh":
    """A mesh by its shape, or from a file that describes it.

    Raises:
        UsageError: the text is not a shape, or the file does not describe a mesh.
    """
    try:
        return mesh_named(text)
    except UsageError as error:
        raise UsageError(f"{what}: {error.message}", hint=error.hint) from None


def user_in(text: str, what: str) -> str:
    """The user of an SSH login, or :data:`SSH_DEFAULT`.

    Raises:
        UsageError: it cannot be a user's name.
    """
    if text != SSH_DEFAULT and (text.startswith("-") or text.split() != [text] or printable(text) != text):
        raise UsageError(f"{what}: {text!r} is not a valid user name: no spaces, no control characters, no leading -")
    return text


def number_in(text: str | None, what: str, most: int) -> int:
    """Parse a number from 1 to ``most``.

    Raises:
        UsageError: the text is not such a number.
    """
    if text is None or not text.isdecimal() or len(text) > _MOST_DIGITS or not 1 <= int(text) <= most:
        raise UsageError(f"{what}: found {text!r}, expected a number from 1 to {most}")
    return int(text)
