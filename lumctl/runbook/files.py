"""Runbooks as files: each finished run leaves one next to its store, readable by its owner only."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from lumctl.context import Context
from lumctl.devices.endpoints import simulator_runs
from lumctl.errors import UsageError
from lumctl.files import make_private, put
from lumctl.runbook.document import make
from lumctl.runbook.yaml_text import AnyRunbook, dump, parsed, read_file
from lumctl.store import WAITING, StoredRun
from lumctl.store.records import nearest_run


def save(context: Context, run_id: str, rack: str) -> Path:
    """Write the runbook of a run to its store's folder and return the path."""
    store = context.store(rack)
    text = dump(make(store.runs.get(run_id), store, context.inventory))
    path = store.files / "runbooks" / f"{run_id}.yaml"
    make_private_folder(path.parent)
    put(path, text, mode=0o600)
    return path


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner may enter.

    Raises:
        UsageError: the folder cannot be made.
    """
    try:
        make_private(folder)
    except OSError as error:
        raise UsageError(f"folder {folder} cannot be created: {error.strerror}") from error


def find_run(context: Context, name: str) -> StoredRun:
    """A run by its id, or as ``RACK/ID`` if several racks of the inventory have that id.

    Raises:
        UsageError: no run has that name, or several have it.
    """
    rack, _, run_id = name.rpartition("/")
    known = [run for run in all_runs(context) if rack in ("", run.rack)]
    found = [run for run in known if run.id == run_id]
    if len(found) == 1:
        return found[0]
    if found:
        racks = " or ".join(f"{run.rack}/{run.id}" for run in found)
        raise UsageError(f"{len(found)} racks have a run {run_id!r}", hint=f"say which: {racks}")
    require_no_demand(context, run_id)
    unknown = unknown_run(name, known, context.target, see="lumctl runbook list")
    if context.target == "rack" and simulator_runs(context.inventory):
        unknown.hint = f"{unknown.hint}; to list those of the running simulator: lumctl runbook list --target sim"
    raise unknown


def unknown_run(name: str, known: Iterable[StoredRun], searched: str, *, see: str) -> UsageError:
    """The error that a target, or several, have no run of a name; ``see`` is the command that lists theirs."""
    rack, slash, run_id = name.rpartition("/")
    near = nearest_run(run_id, [run.id for run in known if rack in ("", run.rack)])
    hint = f"did you mean {rack}{slash}{near}?" if near else f"see: {see}"
    return UsageError(f"no run {name!r} on target {searched}", hint=hint)


def require_no_demand(context: Context, name: str) -> None:
    """Refuse the name of a demand for spares where something else is wanted.

    Raises:
        UsageError: a demand has that name.
    """
    found = [each for rack in context.inventory.racks for each in context.store(rack).demands.all() if each.id == name]
    if not found:
        return
    see = f"lumctl spare queue{'' if found[0].state == WAITING else ' --all'} --target {context.target}"
    served = f"; {found[0].run} served it" if found[0].run else ""
    raise UsageError(f"{name} is a demand for spares of {found[0].job}{served}", hint=f"see it: {see}")


def all_runs(context: Context) -> list[StoredRun]:
    """The runs of all racks of the inventory, newest first."""
    runs = [run for rack in context.inventory.racks for run in context.store(rack).runs.all()]
    return sorted(runs, key=lambda run: -run.started_at)


def find_runbook(context: Context, name: str, given: Mapping[str, str] | None = None) -> AnyRunbook:
    """A runbook by the id of its run, or by the path of a file; ``given`` are values of its parameters.

    Raises:
        UsageError: neither a run nor a file has that name, or the runbook has no such parameter.
    """
    path = Path(name)
    if is_file(name):
        return read_file(path, given)
    run = find_run(context, name)
    return parsed(make(run, context.store(run.rack), context.inventory), run.id, given)


def is_file(name: str) -> bool:
    """Whether a name refers to a file, not to a run."""
    return Path(name).suffix in {".yaml", ".yml"} or Path(name).exists()
