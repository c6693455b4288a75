"""Templates for plug-ins: in a wheel beside the package's modules, in a checkout in ``plugins/template/``."""

import shutil
from pathlib import Path

from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.problems import nearest

TEMPLATES = ("mesh", "switch", "transponder", "power", "job", "probe")

_PACKAGE = Path(__file__).resolve().parent
_FOLDERS = (_PACKAGE / "templates", _PACKAGE.parent / "plugins" / "template")
_BUILT = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*", "build", "dist")


def template(kind: str) -> Path:
    """The folder of a template.

    Raises:
        UsageError: there is no such template, or this installation lacks it.
    """
    if kind not in TEMPLATES:
        near = nearest(kind, TEMPLATES)
        one_of = f"one of: {', '.join(TEMPLATES)}"
        raise UsageError(f"there is no template {kind!r}", hint=f"did you mean {near}? {one_of}" if near else one_of)
    for folder in _FOLDERS:
        if (folder / kind).is_dir():
            return folder / kind
    raise UsageError(f"this installation of lumctl lacks the template {kind!r}", hint="reinstall lumctl")


def copy_template(kind: str, folder: Path) -> tuple[Path, ...]:
    """Copy a template into a new or empty folder; return the files that were written.

    Raises:
        UsageError: there is no such template, or the folder cannot be written.
        RefusedError: the folder is not empty.
    """
    found = template(kind)
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise RefusedError(f"{folder} is not empty; nothing was written", hint="name a folder that does not exist")
        shutil.copytree(found, folder, ignore=_BUILT, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{folder} cannot be written: {reason}", hint="name another folder") from error
    return tuple(sorted(path for path in folder.rglob("*") if path.is_file()))
