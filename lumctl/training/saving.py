"""Writing the picture of a recovery into a file, as its name asks for."""

import os
from pathlib import Path

from lumctl.errors import UsageError
from lumctl.files import put
from lumctl.training.about import About
from lumctl.training.picture import png, svg
from lumctl.training.published import MORPHLUX, Published
from lumctl.training.rows import Measured

SUFFIXES = (".svg", ".png")


def require_place(path: Path) -> None:
    """Require a folder that can be written to, and a name by which the kind of picture is known.

    To be asked before anything is measured.

    Raises:
        UsageError: the name is none of :data:`SUFFIXES`, or the folder is not to be had.
    """
    _require_suffix(path)
    if not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path} cannot be written: no folder {path.absolute().parent} that you may write to")


def _require_suffix(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"{path}: a picture is not written as {path.suffix or 'a file without a suffix'}",
            hint=f"give it one of these: {', '.join(SUFFIXES)}",
        )


def save(
    path: Path, measured: Measured, about: About, *, title: str = "", published: Published | None = MORPHLUX
) -> None:
    """Write the picture, whole or not at all.

    Raises:
        UsageError: the name asks for something else, the file cannot be written, or PNG needs what is not installed.
    """
    _require_suffix(path)
    drawing = png if path.suffix.lower() == ".png" else svg
    drawn = drawing(measured, about, title=title, published=published)
    put(path, drawn if isinstance(drawn, bytes) else drawn.encode())
