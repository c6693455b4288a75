"""Requests from screens to the application, and the kinds of screens that several others open."""

from dataclasses import dataclass
from enum import StrEnum

from textual.message import Message

from lumctl.tui.views.subject import WorkSubject

SPARES_KIND, MATRIX_KIND, LOSSES_KIND, TORUS_KIND = "spares", "matrix", "losses", "torus"
"""The kinds of the screens of spares, of the links of a device, of the loss budget, and of the torus."""
HOST_OUTPUT_KIND = "host-output"
"""The kind of the screen of a host's probe output."""


@dataclass
class Wanted(Message):
    """Open the screen of a subject: its kind (a pane's ``opens``), and its key."""

    kind: str
    key: str


@dataclass
class PlanWanted(Message):
    """Plan a swap for an accelerator, or for several that fail with one cause.

    ``left_out`` says which marked components are not replaced, and why.
    """

    accelerator: str
    others: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class RefreshWanted(Message):
    """Read everything again now."""


class WorkKind(StrEnum):
    """The tool that a key opens for the selected component."""

    SHELL = "shell"
    """A shell on its host."""
    OUTPUT = "output"
    """The kernel log of its host, and the output of each probe."""
    RUNBOOK = "runbook"
    """The runbook of the run that last concerned it."""
    TICKET = "ticket"
    """A ticket text of it, on the clipboard."""


@dataclass
class WorkWanted(Message):
    """Open the tool."""

    work: WorkKind
    subject: WorkSubject
