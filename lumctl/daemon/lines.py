"""Changes of state as lines for people: a cause before what it brings down, and what changed alike in one line."""

from collections.abc import Iterable, Iterator

from lumctl.health.transitions import Transition
from lumctl.inventory.folded_names import fold

_CAUSES_FIRST = ("host", "device", "accelerator", "link", "circuit")


def lines_of(changes: Iterable[Transition]) -> Iterator[str]:
    """One line for each change, or for all components of a kind that changed in the same way."""
    alike: dict[tuple[str, str], list[str]] = {}
    for change in sorted(changes, key=lambda change: _CAUSES_FIRST.index(change.kind)):
        alike.setdefault((change.kind, _what_of(change)), []).append(change.component)
    for (kind, what), components in alike.items():
        counted = kind if len(components) == 1 else f"{len(components)} {kind}s"
        yield f"{counted} {', '.join(fold(components))} {what}"


def _what_of(change: Transition) -> str:
    before = change.before.value if change.before else "new"
    rules = f" ({', '.join(change.rules)})" if change.rules else ""
    evidence = f": {' '.join(change.evidence.split())}" if change.evidence else ""
    return f"{before} -> {change.after.value}{evidence}{rules}"
