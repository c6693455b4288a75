"""PCI addresses: tools print four or eight digits of domain, in either case, with or without the function."""

import re

_ADDRESS = re.compile(
    r"(?<![0-9a-f])(?P<domain>[0-9a-f]{8}|[0-9a-f]{4,5}):(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})"
    r"(?:\.(?P<function>[0-7]))?(?![0-9a-f])",
    re.IGNORECASE,
)


def find_pci(text: str) -> str | None:
    """The first PCI address in a text, as the program writes it: ``0000:9b:00.0``; ``None`` if there is none."""
    return _written(_ADDRESS.search(text))


def whole_pci(text: str) -> str | None:
    """A text that is nothing but a PCI address, as the program writes it."""
    return _written(_ADDRESS.fullmatch(text.strip()))


def _written(found: re.Match[str] | None) -> str | None:
    if found is None:
        return None
    domain = f"{int(found['domain'], 16):04x}"
    return f"{domain}:{found['bus']}:{found['device']}.{found['function'] or 0}".lower()
