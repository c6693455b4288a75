"""The questions of ``lumctl inventory init``: each answer is checked at its prompt, and asked for again if invalid."""

import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TypeVar

from lumctl.cli.fabric_mesh import mesh_named
from lumctl.cli.init_answers import (
    MOST_GPUS,
    NO_SPARES,
    SSH_DEFAULT,
    InitAnswers,
    address_in,
    intended_range,
    names_in,
    number_in,
    user_in,
)
from lumctl.cli.init_checks import options_lacking
from lumctl.cli.new_rack import DEFAULT_JOB, NewRack, spares_in
from lumctl.cli.new_rack_limits import (
    SHORTEST_RING,
    fullest,
    job_in,
    meshes_possible,
    ports_lacking,
    ring_lacking,
    roomy_mesh,
)
from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.fabric import Mesh
from lumctl.printable import printable

T = TypeVar("T")
_USUAL_MESH = "9x9"
_NARROWEST = 20
"""The fewest columns into which a question is broken."""
_MESH = "Shape of the meshes: 9x9 (columns x rows of hexagonal cells), hexagon:3 (its side), square:4x4, or a FILE"
_ADDRESSES = "Addresses of the hosts: {name} for their names, {name}.example.org, or 10.0.0.[1-4]"
_LEFT_OUT = {("address", "{name}"), ("user", SSH_DEFAULT)}


def can_ask() -> bool:
    """Whether an operator can be asked: stdin and stderr are terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _read_line() -> str:
    return sys.stdin.readline()


def _say(text: str) -> None:
    """Print a text, broken between words where the terminal's width ends."""
    body = printable(text, lines=True).rstrip()
    # Two columns remain for the space after a question and the cursor.
    width = max(shutil.get_terminal_size().columns - 2, _NARROWEST)
    lines = [
        textwrap.fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for line in body.split("\n")
    ]
    _print("\n".join(lines) + text[len(text.rstrip()) :])


def _print(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


def ask(
    question: str,
    default: str,
    check: Callable[[str], T],
    *,
    read: Callable[[], str] = _read_line,
    say: Callable[[str], object] = _say,
) -> T:
    """The result of ``check`` for the answer, or for ``default`` if it is empty; asks until ``check`` accepts one.

    Raises:
        RefusedError: the input has ended.
    """
    while True:
        say(f"{question} [{default}]: ")
        line = read()
        if not line:
            say("\n")
            raise RefusedError("the input ended before all questions were answered; nothing was written")
        try:
            return check(line.strip() or default)
        except LumctlError as error:
            say(f"  {error.message}" + (f"; {error.hint}" if error.hint else "") + "\n")


Ask = Callable[[str, str, Callable[[str], str]], str]


def completed(given: InitAnswers, *, read_hosts: bool) -> InitAnswers:
    """The answers, which were checked, completed by asking for missing ones on the terminal."""
    if options_lacking(given, read_hosts=read_hosts):
        given = asked(given, ask, read_hosts=read_hosts)
        # What cannot be checked at a prompt, such as whether the ring has a route, must not cost the answers.
        # On one line, so that it can be copied.
        _print(printable(f"these answers as options: {as_options(given)}\n", lines=True))
    return replace(given, user=None) if given.user == SSH_DEFAULT else given


def asked(given: InitAnswers, ask: Ask, *, read_hosts: bool) -> InitAnswers:
    """All answers: the given ones, and the results of ``ask`` for the others."""
    hosts = given.hosts or _hosts(ask)
    names = names_in(hosts, "hosts")
    gpus = given.gpus
    if not gpus and not read_hosts:
        gpus = ask("GPUs of each host", "4", lambda text: _gpus_in(text, len(names)))
    if gpus and not read_hosts:
        rack = NewRack(names, dict.fromkeys(names, int(gpus)), number_in(given.meshes or gpus, "--meshes", int(gpus)))
        rack.spares = spares_in(given.spares, rack) if given.spares else frozenset()
        mesh = _mesh(ask, given.mesh, _rings(rack, fixed=bool(given.meshes)))
        rack.meshes = int(given.meshes) if given.meshes else _meshes(ask, rack, mesh_named(mesh))
        meshes: str | None = str(rack.meshes)
    else:
        # What the hosts have is known when they are read: until then they may have any GPU, on a mesh of its own.
        rack = NewRack(names, dict.fromkeys(names, MOST_GPUS), int(given.meshes or MOST_GPUS))
        mesh, meshes = given.mesh or ask(_MESH, _USUAL_MESH, _shape_in), given.meshes
    # The default must be an answer that is accepted.
    usual = names[-1] if names[1:] and not ring_lacking(rack, spares_in(names[-1], rack)) else NO_SPARES
    spares = given.spares or ask(
        "Spares: hosts, accelerators or none", usual, lambda text: _spares_in(text, rack, known=not read_hosts)
    )
    job = given.job or ask("Name of the job", DEFAULT_JOB, lambda text: job_in(text, "job", rack))
    address = given.address or ask(_ADDRESSES, "{name}", lambda text: address_in(text, "address", names))
    user = given.user or ask(
        f"SSH user ({SSH_DEFAULT}: from ssh's configuration)", SSH_DEFAULT, lambda text: user_in(text, "user")
    )
    return InitAnswers(hosts, gpus, mesh, meshes, spares, job, address, user)


def _hosts(ask: Ask) -> str:
    def check(text: str) -> str:
        names_in(text, "hosts")
        return text

    hosts = ask("Hosts, folded (h[01-03] is h01, h02 and h03; commas separate names)", "h[01-04]", check)
    meant = intended_range(names_in(hosts, "hosts"))
    return ask(f"{hosts} is one host. Enter that name again, or several hosts", meant, check) if meant else hosts


def _gpus_in(text: str, hosts: int) -> str:
    if number_in(text, "GPUs", MOST_GPUS) * hosts < SHORTEST_RING:
        raise UsageError("one GPU on one host cannot form a ring: a ring needs two GPUs")
    return text


def _rings(rack: NewRack, *, fixed: bool) -> NewRack:
    """The rack with as many meshes as the smallest port count needs: one for each GPU of a host, if each gets a ring.

    Raises:
        UsageError: some mesh would keep fewer than two GPUs.
    """
    possible = [] if fixed else meshes_possible(rack)
    tried = rack if fixed else replace(rack, meshes=possible[-1] if possible else 1)
    if problem := ring_lacking(tried, tried.spares):
        raise UsageError(problem, hint="use more hosts, more GPUs or fewer --spares")
    return tried


def _shape_in(text: str) -> str:
    mesh_named(text)
    return text


def _mesh(ask: Ask, given: str | None, rack: NewRack) -> str:
    """The shape; it must have ports for the lanes of this rack."""
    enough = roomy_mesh(fullest(rack))

    def check(text: str) -> str:
        if problem := ports_lacking(rack, mesh_named(text)):
            raise UsageError(problem, hint=f"{enough} has enough" if enough else None)
        return text

    if given:
        return check(given)
    usual = _USUAL_MESH if not ports_lacking(rack, mesh_named(_USUAL_MESH)) else enough or _USUAL_MESH
    return ask(_MESH, usual, check)


def _meshes(ask: Ask, rack: NewRack, mesh: Mesh) -> int:
    most, possible = rack.most_gpus, meshes_possible(rack, mesh)

    def check(text: str) -> str:
        trial = replace(rack, meshes=number_in(text, "meshes", most))
        if problem := ring_lacking(trial, trial.spares) or ports_lacking(trial, mesh):
            raise UsageError(problem, hint=f"possible: {', '.join(map(str, possible))}")
        return text

    if possible == [1]:
        return 1
    question = f"Meshes: {most} (one for each GPU number of all hosts), or 1 for all GPUs"
    return int(ask(question, str(possible[-1]), check))


def _spares_in(text: str, rack: NewRack, *, known: bool) -> str:
    spares = spares_in(text, rack, "spares")
    if known and (problem := ring_lacking(rack, spares)):
        raise UsageError(problem, hint=f"use fewer, or {NO_SPARES}")
    return text


def as_options(answers: InitAnswers) -> str:
    """The answers as options of the command."""
    told = {name: value for name, value in asdict(answers).items() if value and (name, value) not in _LEFT_OUT}
    return shlex.join(word for name, value in told.items() for word in (f"--{name}", value))
