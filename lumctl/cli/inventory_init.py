"""``lumctl inventory init``: write the first inventory of a rack, from a few answers and from what its hosts report."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumctl.cli.init_answers import MOST_GPUS, InitAnswers, mesh_in, names_in, number_in
from lumctl.cli.init_checks import OtherOptions, check_options, names_among, require_given
from lumctl.cli.init_questions import can_ask, completed
from lumctl.cli.invocation import Invocation
from lumctl.cli.new_rack import (
    DEFAULT_JOB,
    MEMORY_GIB,
    MODEL,
    NewRack,
    new_inventory,
    new_meshes,
    port_layouts,
    spares_in,
)
from lumctl.cli.new_rack_limits import require_fit, require_own_names, room_hint, spares_by_mesh, spares_lacking
from lumctl.cli.option_errors import OptionErrors
from lumctl.cli.output import OutputFormat
from lumctl.cli.progress import progress
from lumctl.cli.verbs import verb
from lumctl.errors import UsageError
from lumctl.files import put
from lumctl.inventory.folded_names import fold
from lumctl.inventory.load import example, inventory_from, load_inventory
from lumctl.inventory.model import DeviceKind
from lumctl.inventory.new_inventory import hosts_text, text_of
from lumctl.inventory.problems import InventoryError
from lumctl.printable import counted

if TYPE_CHECKING:
    from lumctl.cli.host_survey import FoundHost
    from lumctl.fabric.geometry import Mesh
    from lumctl.fabric.lane_ports import LaneLayout
    from lumctl.inventory.model import Inventory

DEFAULT_FILE = "lumctl.yaml"


def register(app: typer.Typer) -> None:
    """Add ``init`` to the commands of ``inventory``."""
    verb(app, "init")(init)


def init(
    cx: Invocation,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="The one file to write; - is stdout. Default: lumctl.yaml."),
    ] = None,
    hosts: Annotated[str | None, typer.Option("--hosts", metavar="NAMES", help="The hosts, folded: h[01-16].")] = None,
    gpus: Annotated[str | None, typer.Option("--gpus", metavar="N", help="How many GPUs each host has.")] = None,
    mesh: Annotated[
        str | None, typer.Option("--mesh", metavar="SHAPE", help="The meshes: 9x9, hexagon:3, square:4x4 or a FILE.")
    ] = None,
    meshes: Annotated[
        str | None,
        typer.Option(
            "--meshes", metavar="N", help="How many meshes divide the GPUs of a host among them; default: one each."
        ),
    ] = None,
    spares: Annotated[
        str | None,
        typer.Option("--spares", metavar="NAMES", help="Hosts or accelerators kept as spares; default: the last host."),
    ] = None,
    job: Annotated[
        str | None, typer.Option("--job", metavar="NAME", help="The job on all other accelerators; default: train.")
    ] = None,
    rack: Annotated[str, typer.Option("--rack", metavar="NAME", help="The name of the rack.")] = "rack1",
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="TEMPLATE",
            help="The hosts' addresses: {name}.example.org or 10.0.0.[1-4]; default: {name}.",
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="The SSH user; default: from ssh's configuration.")
    ] = None,
    mesh_address: Annotated[
        str | None, typer.Option("--mesh-address", metavar="TEMPLATE", help="The meshes' controllers: {id}.org:65432.")
    ] = None,
    driver: Annotated[str, typer.Option("--driver", metavar="NAME", help="The meshes' driver.")] = "smartlight",
    model: Annotated[str, typer.Option("--model", metavar="TEXT", help="The GPUs' product.")] = MODEL,
    memory_gib: Annotated[
        int, typer.Option("--memory-gib", metavar="N", min=1, max=100_000, help="The memory of a GPU.")
    ] = MEMORY_GIB,
    interfaces: Annotated[
        str | None,
        typer.Option("--interfaces", metavar="NAMES", help="A host's interfaces to the meshes, two per GPU: eth[2-9]."),
    ] = None,
    read_hosts: Annotated[
        bool, typer.Option("--read-hosts", help="Read GPUs, interfaces and LLDP neighbours from the hosts over SSH.")
    ] = False,
    limit: Annotated[
        float, typer.Option("--limit", metavar="SECONDS", min=0.1, max=86_400, help="Time limit for choosing ports.")
    ] = 20.0,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Seed that decides which layouts of ports are tried.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented inventory of one rack: hosts, GPUs, meshes, lanes and a job.

    On a terminal the command asks for missing options. Without a terminal, --hosts, --gpus (or --read-hosts) and
    --mesh are needed.

    Each GPU has two lanes. The job runs on all GPUs that are not spares, as one ring on each mesh. The ports are chosen
    by trial: on the written inventory the job's circuits can be routed, and each of its GPUs can be replaced; the
    command lists exceptions.

    The command makes racks with meshes. For a rack with an optical switch, begin with a copy of the example
    switched.yaml; with a switch's driver, such as --driver polatis-scpi, the error gives its path.
    """
    from lumctl.fabric.lane_ports import NoLayoutError

    given = InitAnswers(hosts, gpus, mesh, meshes, spares, job, address, user)
    # What can be refused at once comes before the questions and the search for ports, which takes a while.
    errors = OptionErrors()
    path = errors.checked(lambda: _path_in(cx, files or [], hosts, force=force))
    errors.checked(lambda: _require_mesh_driver(driver))
    check_options(
        errors, given, OtherOptions(rack, mesh_address, interfaces, model), files or [], read_hosts=read_hosts
    )
    if not can_ask():
        errors.checked(lambda: require_given(given, read_hosts=read_hosts))
    errors.require_none()
    answers = completed(given, read_hosts=read_hosts)
    shape_of = mesh_in(answers.mesh or "", "--mesh")
    names = names_in(answers.hosts or "", "--hosts")
    found: Mapping[str, FoundHost] = {}
    base = path or Path(DEFAULT_FILE)
    if read_hosts:
        with progress(f"reading {counted(len(names), 'hosts')}", quiet=cx.out.quiet):
            found = _read(cx, base, names, answers)
    counts = {name: len(found[name].gpus) if found else number_in(answers.gpus, "--gpus", MOST_GPUS) for name in names}
    most = max(counts.values())
    made = NewRack(names, counts, number_in(answers.meshes, "--meshes", most) if answers.meshes else most, found=found)
    made.spares = spares_in(answers.spares, made)
    require_fit(made, shape_of)
    require_own_names(made, answers.job or DEFAULT_JOB)
    with progress("choosing ports", quiet=cx.out.quiet) as tell:
        try:
            layouts = port_layouts(made, shape_of, limit, seed, tell)
        except UsageError as error:
            room = room_hint(made, shape_of)
            more_time = isinstance(error, NoLayoutError) and error.out_of_time
            hint = f"a --limit longer than {limit:g} s, or {room}" if more_time else room
            raise UsageError(error.message, hint=hint) from None
    new = new_inventory(made, shape_of, layouts, answers, interfaces, (model, memory_gib))
    new = replace(new, rack=rack, driver=driver, meshes=new_meshes(made, answers.mesh or "", mesh_address))
    text = text_of(new)
    # Read back before it is written: a file that lumctl refuses must not come into being.
    inventory = _checked(text, base)
    if path is None:
        cx.out.text(text.rstrip("\n"))
    else:
        put(path, text, mode=0o644)
    _tell(cx, path, inventory, made, shape_of, layouts, new.job)


def _path_in(cx: Invocation, words: Sequence[str], hosts: str | None, *, force: bool) -> Path | None:
    """The file to write; ``None`` for stdout.

    Raises:
        UsageError: several files are given, or the file cannot be written.
    """
    # A host name among the words is an error of --hosts, see check_options.
    try:
        known = names_in(hosts, "--hosts") if hosts else []
    except UsageError:
        known = []
    named = [word for word in words if word not in names_among(words, known)]
    if len(named) > 1:
        hint = "only one file can be written: give one path"
        # Words without a dot or slash may be host names that were separated with spaces.
        if hosts and not any("." in word or "/" in word for word in named):
            hint += f"; if these are hosts: --hosts {shlex.quote(','.join([hosts, *named]))}"
        raise UsageError(f"found {len(named)} files: {' '.join(named)}", hint=hint)
    file = named[0] if named else None
    if file == "-":
        return None
    path = Path(file or cx.inventory_path or DEFAULT_FILE)
    _require_writable(path, force=force)
    return path


def _require_mesh_driver(name: str) -> None:
    """Refuse a driver that cannot drive the meshes.

    Raises:
        UsageError: it is not installed, does not import, or drives something else.
    """
    from lumctl.devices.drivers import load

    try:
        kind = load(name).kind
    except UsageError as error:
        raise UsageError(f"--driver: {error.message}", hint=error.hint) from None
    if kind != DeviceKind.MESH:
        hint = "kinds: lumctl plugin list -o wide"
        if kind == DeviceKind.SWITCH:
            hint = f"this makes racks with meshes; for an optical switch, begin with a copy of {example('switched')}"
        raise UsageError(f"--driver: {name!r} is of kind {kind}, not mesh", hint=hint)


def _require_writable(path: Path, *, force: bool) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint=f"give a file: {path / DEFAULT_FILE}")
    if path.exists() and not force:
        raise UsageError(f"{path} exists; nothing was written", hint="give another file, or replace it with --force")
    if not path.parent.is_dir():
        raise UsageError(f"folder {path.parent} does not exist", hint=f"mkdir -p {shlex.quote(str(path.parent))}")


def _read(cx: Invocation, path: Path, names: Sequence[str], answers: InitAnswers) -> "Mapping[str, FoundHost]":
    """Read the hosts. If the file exists and has all of them, its addresses and users are used to reach them."""
    from lumctl.cli.host_survey import survey
    from lumctl.devices.endpoints import rack_endpoints, sim_endpoints

    described: Inventory | None = None
    if path.is_file():
        described = load_inventory(path)
        described = described if set(names) <= described.hosts.keys() else None
    inventory = described or _checked(hosts_text(names, answers.address, answers.user), path)
    endpoints = sim_endpoints(inventory) if cx.target == "sim" else rack_endpoints(inventory)
    endpoints = replace(endpoints, hosts={name: endpoints.hosts[name] for name in names})
    at = shlex.quote(str(path))
    enrol = f"run lumctl inventory trust -i {at}, then this command again" + ("" if described else " with --force")
    if described is None:
        enrol = f"write {at} without --read-hosts first, then {enrol}"
    return survey(inventory, endpoints, enrol_hint=enrol)


def _checked(text: str, path: Path) -> "Inventory":
    """The inventory that the text describes.

    Raises:
        UsageError: an answer does not fit an inventory, such as a host's name with a blank in it.
    """
    try:
        return inventory_from(text.encode(), path)
    except InventoryError as error:
        first = error.problems[0]
        raise UsageError(f"these answers give no valid inventory: {first.message}", hint=first.hint) from None


def _tell_spares(cx: Invocation, rack: NewRack, mesh: "Mesh", unrouted: "Sequence[str]") -> None:
    """Say what spares cannot replace; ``unrouted`` are accelerators of meshes with a spare to which no route leads."""
    if not rack.spares:
        cx.out.narrate("there are no spares: no GPU can be replaced (--spares)")
    elif lacking := spares_lacking(rack, mesh):
        cx.out.narrate(lacking)
    elif rack.meshes > 1:
        cx.out.narrate(f"a spare replaces GPUs of its own mesh only: {spares_by_mesh(rack)}")
    if unrouted:
        cx.out.narrate(
            f"no routes were found to replace {','.join(fold(unrouted))}: {room_hint(rack, mesh)}, or a longer --limit"
        )


def _tell(
    cx: Invocation,
    path: Path | None,
    inventory: "Inventory",
    rack: NewRack,
    mesh: "Mesh",
    layouts: "Sequence[tuple[list[str], list[str], LaneLayout]]",
    job: str,
) -> None:
    without = [
        accelerator
        for ranks, _, layout in layouts
        for accelerator, able in zip(ranks, layout.replaceable, strict=True)
        if not able
    ]
    beside_spares = {accelerator for ranks, spares, _ in layouts if spares for accelerator in ranks}
    _tell_spares(cx, rack, mesh, [accelerator for accelerator in without if accelerator in beside_spares])
    victim = next((a for ranks, _, _ in layouts for a in ranks if a not in without), None)
    if path is None:
        return
    from lumctl.devices.endpoints import sim_runtime_folder
    from lumctl.sim.runtime import running_pid

    at = shlex.quote(str(path))
    lanes = counted(len(inventory.transponders), "lanes")
    accelerators = counted(len(inventory.accelerators), "accelerators")
    cx.out.narrate(
        f"wrote {path}: {counted(len(rack.names), 'hosts')}, {accelerators} ({counted(len(rack.spares), 'spares')}), "
        f"{lanes}, "
        f"{counted(rack.meshes, 'meshes', 'mesh')}, job {job}"
    )
    commands = [f"lumctl sim up --detach -i {at}", f"lumctl status --target sim -i {at}"]
    if running_pid(sim_runtime_folder(path)) is not None:  # a simulator of the file's older text runs
        commands.insert(0, f"lumctl sim down -i {at}")
    if victim is not None and rack.spares:
        commands += [
            f"lumctl sim fault {victim} gpu-lost -i {at}",
            f"lumctl swap plan {shlex.quote(job)} --failed {victim} --target sim -i {at}",
        ]
    if cx.out.structured:
        cx.out.document(
            "inventory-init",
            {
                "file": str(path),
                "hosts": len(rack.names),
                "accelerators": len(inventory.accelerators),
                "spares": sorted(rack.spares),
                "meshes": rack.meshes,
                "irreplaceable": without,
                "next": commands,
            },
        )
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([str(path)])
    cx.out.narrate("next, try it on a simulator:")
    for command in commands:
        cx.out.narrate(f"    {command}")
    # Without --target rack, $LUMCTL_TARGET or --target of this command would send these commands to the simulator.
    on_rack = f"--target rack -i {at}" if cx.target == "sim" else f"-i {at}"
    cx.out.narrate("then, on the rack:")
    for words in ("inventory trust", "status", "fabric apply"):
        cx.out.narrate(f"    lumctl {words} {on_rack}")
