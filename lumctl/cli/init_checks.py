"""Checks of the options of ``lumctl inventory init``: one error reports everything that is wrong with them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lumctl.cli.init_answers import (
    MOST_GPUS,
    InitAnswers,
    address_in,
    mesh_in,
    name_in,
    names_in,
    number_in,
    user_in,
)
from lumctl.cli.new_rack import (
    DEFAULT_JOB,
    MODEL,
    NewRack,
    require_interfaces,
    require_mesh_address,
    spares_in,
)
from lumctl.cli.new_rack_limits import require_fit, require_own_names
from lumctl.cli.option_errors import OptionErrors
from lumctl.errors import UsageError
from lumctl.inventory.entry import MOST_TEXT

_EXAMPLES = {"--hosts": "'h[01-16]'", "--gpus": "4", "--mesh": "9x9"}
_DIGITS = re.compile(r"[0-9]+")


@dataclass(frozen=True)
class OtherOptions:
    """Options that no question asks for: the rack's name, the meshes' addresses, the interfaces and the model."""

    rack: str
    mesh_address: str | None
    interfaces: str | None
    model: str


def check_options(
    errors: OptionErrors, given: InitAnswers, others: OtherOptions, words: Sequence[str], *, read_hosts: bool
) -> None:
    """Note every error of the given options: first of each by itself, then of those that must fit each other.

    ``words`` are the command's arguments; a host name among them was meant for ``--hosts``.
    """
    names = errors.checked(lambda: _hosts(given.hosts or "", words)) if given.hosts else None
    gpus = errors.checked(lambda: number_in(given.gpus, "--gpus", MOST_GPUS)) if given.gpus else None
    mesh = errors.checked(lambda: mesh_in(given.mesh or "", "--mesh")) if given.mesh else None
    known = gpus if not read_hosts else None
    most = known or MOST_GPUS
    meshes = errors.checked(lambda: number_in(given.meshes, "--meshes", most)) if given.meshes else most
    # If the number of GPUs is not known, any number of a GPU is accepted in the name of a spare.
    largest = NewRack(names, dict.fromkeys(names, most), meshes or most) if names else None
    spares = errors.checked(lambda: spares_in(given.spares, largest)) if largest else None
    rack = largest if known else None
    job = errors.checked(lambda: name_in(given.job or DEFAULT_JOB, "--job"))
    _check_others(errors, given, others, names, known, rack)
    if rack is None or meshes is None:  # what the meshes would carry is unknown
        return
    if mesh and spares is not None:
        rack.spares = spares
        errors.checked(lambda: require_fit(rack, mesh))
    if job:
        errors.checked(lambda: require_own_names(rack, job))


def _check_others(
    errors: OptionErrors,
    given: InitAnswers,
    others: OtherOptions,
    names: Sequence[str] | None,
    gpus: int | None,
    rack: NewRack | None,
) -> None:
    """Note the errors of addresses, the user, the rack's name and the interfaces."""
    if given.address:
        errors.checked(lambda: address_in(given.address or "", "--address", names or ()))
    if given.user:
        errors.checked(lambda: user_in(given.user or "", "--user"))
    errors.checked(lambda: name_in(others.rack, "--rack"))
    errors.checked(lambda: _require_model(others.model))
    if others.mesh_address:
        errors.checked(lambda: require_mesh_address(others.mesh_address or "", rack.meshes if rack else 1))
    if others.interfaces is not None:
        errors.checked(lambda: require_interfaces(names_in(others.interfaces or "", "--interfaces"), gpus or 0))


def _require_model(text: str) -> None:
    if not 0 < len(text) <= MOST_TEXT:
        raise UsageError(f"--model: found {len(text)} characters, expected 1 to {MOST_TEXT}", hint=f"such as '{MODEL}'")


def require_given(given: InitAnswers, *, read_hosts: bool) -> None:
    """Refuse options of which a needed one is missing.

    Raises:
        UsageError: one is; the error lists all of them.
    """
    if lacking := options_lacking(given, read_hosts=read_hosts):
        raise UsageError(
            f"{', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} missing, and stdin is not a terminal",
            hint=f"such as: {' '.join(f'{flag} {_EXAMPLES[flag]}' for flag in lacking)}",
        )


def options_lacking(given: InitAnswers, *, read_hosts: bool) -> list[str]:
    """The options that are needed and were not given."""
    needed: Mapping[str, object] = {
        "--hosts": given.hosts,
        "--gpus": given.gpus or read_hosts,
        "--mesh": given.mesh,
    }
    return [flag for flag, value in needed.items() if not value]


def _hosts(text: str, words: Sequence[str]) -> list[str]:
    """The names of the hosts.

    Raises:
        UsageError: a name is wrong, or a space separates the last one from others.
    """
    names = names_in(text, "--hosts")
    alike = names_among(words, names)
    if alike:
        first = [] if names[-1] in alike else [names[-1]]
        raise UsageError(
            f"{' '.join(alike)} would be taken as the FILE to write; separate names with commas",
            hint=f"use {','.join([*first, *alike])} without spaces; for a file of that name: ./{alike[-1]}",
        )
    return names


def names_among(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """The words that differ from the last of these host names in their numbers only."""
    return [word for word in words if names and _DIGITS.sub("", word) == _DIGITS.sub("", names[-1])]
