"""Accelerators that are tied to each other: those that share a board, or that work as one inside their host."""

from lumctl.inventory.document import AcceleratorEntry
from lumctl.inventory.problems import Mark
from lumctl.inventory.scope import Scope


def tied_of(group: AcceleratorEntry, templates: list[str], host: str, scope: Scope) -> list[str] | None:
    """The name of the tie of each accelerator of an entry in one host; ``None`` where they are not tied."""
    if group.tied is None:
        return None
    mark = group.mark("tied")
    written = scope.texts(group, "tied", templates)
    filled = [scope.fill(text, mark, "host", host) for text in written or ()]
    return [text for text in filled if text] if filled and all(filled) else None


def note_tie(tied: str, accelerator: str, host: str, mark: Mark, scope: Scope) -> None:
    """Keep in mind who is tied, until all of them are known."""
    scope.ties.setdefault(tied, []).append((accelerator, host, mark))


def check_ties(scope: Scope) -> None:
    """What is tied is in one host, and more than one."""
    for tied, members in scope.ties.items():
        accelerator, host, mark = members[0]
        other = next(((where, at) for _, where, at in members if where != host), None)
        if other is not None:
            scope.problems.add(
                other[1],
                f"tie {tied!r} has accelerators of {host} and of {other[0]}, expected those of one host",
                'let its name tell the host: "{host}-board"',
            )
        elif len(members) == 1:
            scope.once("lone tie", mark, f"tie {tied!r} has {accelerator} alone, expected two or more")
