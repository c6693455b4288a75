"""Every fault on every component of a job's circuits: the first command that lumctl suggests repairs the job.

Where nothing in the rack can, it names the part to mend and says why. Truth is what the simulator's receivers hear.
"""

import os
import random
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from racks import Rack, rack_of

from lumctl.change import apply
from lumctl.context import Context
from lumctl.devices.types import PucState
from lumctl.errors import LumctlError
from lumctl.fabric import mesh_of, trace
from lumctl.inventory.wiring import Circuit, circuits_of
from lumctl.swap import commission, plan_fabric, plan_reroute, plan_swap
from lumctl.swap.suggestions import nothing_named

WHOLE = bool(os.environ.get("LUMCTL_CAMPAIGN"))
SEED, SAMPLED = 22, 3
LANE_FAULTS = ("dark", "dim", "link-down", "/rx dark", "/fibre dark", "/fibre dim", "/converter dark")


@dataclass(frozen=True)
class Fault:
    """A fault at a component; ``ends`` are the accelerators at which its light is lost."""

    component: str
    kind: str
    ends: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        return f"{self.kind}-{self.component}"


def faults_of(inventory) -> list[Fault]:
    """Every fault of every component that the circuits of the job need, but for the PUCs."""
    found = []
    circuits = circuits_of(inventory, {job.name: job.ranks for job in inventory.jobs.values()})
    lanes = {end.transponder: inventory.transponders[end.transponder] for c in circuits for end in (c.a, c.b)}
    for name, lane in lanes.items():
        for fault in LANE_FAULTS:
            part, _, kind = fault.rpartition(" ")
            found.append(Fault(f"{name}{part}", kind, frozenset({lane.accelerator})))
        for port in lane.lane.ports:
            found += [Fault(f"mesh/port/{port}", kind, frozenset({lane.accelerator})) for kind in ("dark", "dim")]
    for accelerator in dict.fromkeys(lane.accelerator for lane in lanes.values()):
        host = inventory.accelerators[accelerator].host
        found += [Fault(accelerator, kind, frozenset({accelerator})) for kind in ("gpu-lost", "row-remap-failed")]
        found.append(Fault(f"{host}/nic", "nic-lost", frozenset({accelerator})))
    return found


def sampled(faults: list[Fault]) -> list[Fault]:
    """One of each kind at each sort of component, by a seed; all of them in a campaign."""
    if WHOLE:
        return faults
    drawn = random.Random(SEED)  # noqa: S311 - a sample that repeats is the point
    sorts: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        sort = next((part for part in ("/rx", "/fibre", "/converter", "/port/", "/nic") if part in fault.component), "")
        sorts.setdefault((sort, fault.kind), []).append(fault)
    return [drawn.choice(those) for those in sorts.values()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    from lumctl.inventory.load import example, load_inventory

    names = {"ring_fault": "ring4", "prototype_fault": "prototype", "monitored_fault": "prototype"}
    for argument, name in names.items():
        if argument in metafunc.fixturenames:
            faults = sampled(faults_of(load_inventory(example(name))))
            if argument == "monitored_fault":
                faults = [each for each in faults if "/" in each.component]
            metafunc.parametrize(argument, faults, ids=lambda fault: fault.id)


@pytest.fixture(scope="module", name="ring")
def _ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    yield from rack_of("ring4", tmp_path_factory.mktemp("ring"))


@pytest.fixture(scope="module", name="prototype")
def _prototype(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    yield from rack_of("prototype", tmp_path_factory.mktemp("prototype"))


@pytest.fixture(scope="module", name="monitored")
def _monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """The prototype with a mesh that measures the power at its ports."""
    yield from rack_of("prototype", tmp_path_factory.mktemp("monitored"), driver="sim-mesh")


def as_new(rack: Rack) -> None:
    """Nothing is faulty, and every circuit really stands where the inventory places it."""
    rack.sim.renew()
    commission(rack.context)
    assert unheard(rack) == []


def unheard(rack: Rack) -> list[str]:
    """The circuits of the placed jobs of which a receiver does not really hear its transmitter."""
    heard = rack.sim.heard()
    return [c.id for c in placed(rack) if any(heard.get(receiver) != sender for receiver, sender in c.receivers)]


def placed(rack: Rack) -> tuple[Circuit, ...]:
    return circuits_of(rack.inventory, rack.context.assignment())


def announced(rack: Rack, context: Context) -> None:
    """All say at once who they are: a transmitter that is heard at a wrong receiver need not wait for its turn."""
    for lane in rack.inventory.transponders:
        context.devices.transponder(lane).announce("aa")


def suggested(context: Context) -> LumctlError:
    """What ``lumctl swap plan`` answers where nobody names what failed; ``health explain`` says the same."""
    return nothing_named(context, context.observe(), None)


def options_of(hint: str | None) -> dict[str, list[str]]:
    """The options of a suggested ``lumctl swap plan``; none where it is no command."""
    if not hint or not hint.startswith("lumctl swap plan --"):
        return {}
    words = [word for word in shlex.split(hint)[3:] if word != "--even-if-healthy"]
    return {name.removeprefix("--"): value.split(",") for name, value in zip(words[::2], words[1::2], strict=True)}


def repair(context: Context, options: dict[str, list[str]], *, healthy: bool = False) -> None:
    """Do what the suggestion says."""
    failed, avoid = options.get("failed", []), options.get("avoid", [])
    plan = (
        plan_swap(context, None, failed, avoid=avoid, even_if_healthy=healthy)
        if failed
        else plan_reroute(context, None, avoid)
    )
    apply(context, plan)


def walk(rack: Rack, fault: Fault) -> tuple[LumctlError, dict[str, list[str]]]:
    """Inject a fault, ask, and do what is suggested; gives what was said and the options of the command."""
    as_new(rack)
    rack.sim.inject(fault.component, fault.kind)
    with rack.another_context() as context:
        said = suggested(context)
        commands = {remedy.command for remedy in context.observe().remedies} - {""}
        options = options_of(said.hint)
        assert bool(commands) is bool(options)
        if options:
            repair(context, options)
            # The faulty part is out of use, and every circuit is really lit by whom it should be.
            assert unheard(rack) == [], (said.message, said.hint)
            assert not fault.ends & set(rack.context.assignment()[next(iter(rack.inventory.jobs))]), said.hint
    return said, options


def test_on_a_ring_with_two_spares_every_suggestion_repairs_the_job(ring, ring_fault):
    said, options = walk(ring, ring_fault)
    assert options, (said.message, said.hint)
    certain = ring_fault.component.startswith("h") and "/fibre" not in ring_fault.component
    if certain and "/converter" not in ring_fault.component:
        # A neighbour that is well is never named.
        assert set(options["failed"]) == ring_fault.ends


def test_with_one_spare_a_suggestion_repairs_the_job_or_names_both_ends_and_says_why_it_cannot(
    prototype, prototype_fault
):
    said, options = walk(prototype, prototype_fault)
    if not options:
        lanes = prototype.inventory.transponders
        named = {lane.accelerator for name, lane in lanes.items() if name in (said.hint or "")}
        assert prototype_fault.ends <= named, said.hint
        assert "no reading shows at which" in said.hint
        assert "1 spare that fits is free, but 2 are needed" in said.hint


def test_monitors_at_the_ports_tell_at_which_end_light_is_lost(monitored, monitored_fault):
    said, options = walk(monitored, monitored_fault)
    if not options:
        assert "no reading shows at which" in said.hint


def pucs_on_the_way(rack: Rack) -> list[tuple[int, str]]:
    """The PUCs that circuits pass, each with the fault that makes it stand in its other state."""
    mesh, held = mesh_of(rack.inventory.devices["mesh"]), rack.cells()["mesh"]
    passed = {puc for c in placed(rack) for puc in trace(mesh, held, c.ports[0]).pucs}
    return [(puc, "stuck-bar" if held[puc] is PucState.CROSS else "stuck-cross") for puc in sorted(passed)]


@pytest.mark.timeout(1800 if WHOLE else 120)
@pytest.mark.parametrize("name", ["ring", "prototype", "monitored"])
def test_light_is_led_round_a_puc_that_does_not_obey(request, name):
    rack = request.getfixturevalue(name)
    as_new(rack)
    pucs = pucs_on_the_way(rack)
    random.Random(SEED).shuffle(pucs)  # noqa: S311 - a sample that repeats is the point
    tried = 0
    for puc, kind in pucs:
        as_new(rack)
        rack.sim.inject(f"mesh/puc/{puc}", kind)
        if not unheard(rack):
            continue  # the light finds to the same port by another way
        tried += 1
        with rack.another_context() as context:
            announced(rack, context)
            said = suggested(context)
            options = options_of(said.hint)
            if options:
                assert f"mesh/puc/{puc}" in options["avoid"], said.hint
                repair(context, options, healthy="--even-if-healthy" in said.hint)
                assert unheard(rack) == [], (puc, said.hint)
            elif f"stuck: {{{puc}: " in (said.hint or ""):
                # No way leads round it: light is led through it as it stands, once the inventory says so.
                stands = "bar" if kind == "stuck-bar" else "cross"
                mesh = rack.inventory.devices["mesh"]
                known = replace(rack.inventory, devices={"mesh": replace(mesh, stuck={puc: stands})})
                assert f"stuck: {{{puc}: {stands}}}" in said.hint
                with Context(known, "sim", endpoints=rack.sim.endpoints(), store=lambda _: rack.store) as edited:
                    apply(edited, plan_fabric(edited, next(iter(known.racks)), rewrite=True))
                assert unheard(rack) == [], (puc, said.hint)
            elif "no route was found around" in said.hint:
                assert f"mesh/puc/{puc}" in said.hint
                assert "replace mesh" in said.hint
            else:
                # In the dark nothing tells a PUC from a fibre, and one spare is too few for both ends.
                assert name == "prototype", said.hint
                assert "no reading shows at which" in said.hint
                for command in re.findall(r"lumctl swap plan --[^;,]+(?:,[^;, ]+)*", said.hint):
                    with suppress(LumctlError):  # undone, for it was not that one
                        repair(context, options_of(command.strip()), healthy=True)
        if tried == SAMPLED and not WHOLE:
            break
    assert tried


def test_a_mesh_whose_controller_is_down_is_named_and_its_light_goes_on(ring):
    as_new(ring)
    ring.sim.inject("mesh", "device-down")
    with ring.another_context() as context:
        said = suggested(context)
    assert unheard(ring) == []
    assert "mesh" in said.message
    assert "check the device's controller" in said.hint
