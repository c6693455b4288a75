"""The steps of a plan: check, darken, light, program, verify, confirm, record.

Transmitters are switched in parallel, and devices are programmed in parallel: one after the other only takes longer.
"""

from collections.abc import Iterable, Mapping, Sequence

from lumctl.change.plan import Do, PlannedChange, Step
from lumctl.change.settings import Settable, Value
from lumctl.inventory.filler_records import FILLER, is_stopped_filler
from lumctl.inventory.folded_names import fold
from lumctl.inventory.model import DeviceKind, Inventory
from lumctl.inventory.phase_records import PHASE, is_phase
from lumctl.inventory.slice_records import is_job
from lumctl.inventory.wiring import PREFIX, is_order
from lumctl.jobs.hooks import PAUSE, PAUSED, RESUME, RUNNING, hooked

_FEW = 4
"""More accelerators than this are named together: ``h01-gpu[0-3]``."""
LIGHT_EXPECTED_S = 0.5
HOST_CALL_EXPECTED_S = 0.1
JOB_EXPECTED_S = 1.0
SIDE_BY_SIDE = {Do.TRANSMIT: "transponder", Do.PROGRAM: "device"}
"""Kinds of steps that may run at the same time if they change different things, with the key that names the thing."""


class StepList:
    """Collects steps, numbers them, and puts steps that may run at the same time into one stage."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self.steps: list[Step] = []

    def check(self, healthy: Sequence[str], *, kept: Sequence[str], replaced: Sequence[str]) -> None:
        """Require that spares are healthy, and find out which circuits are sound before anything moves."""
        are = "is" if len(healthy) == 1 else "are"
        names = fold(healthy) if len(healthy) > _FEW else healthy
        what = f"check that {', '.join(names)} {are} healthy, and " if healthy else ""
        self._add(
            Do.CHECK,
            f"{what}find which of {_counted(len(kept) + len(replaced), 'circuit')} work",
            {"healthy": list(healthy), "kept": list(kept), "replaced": list(replaced)},
            precondition="a fresh reading says ok" if healthy else "",
            undo="nothing was done",
            expected_seconds=2 * HOST_CALL_EXPECTED_S,
        )

    def transmit(self, transponder: str, *, enabled: bool, required: bool) -> None:
        """Switch one transmitter."""
        self._add(
            Do.TRANSMIT,
            f"turn {'on' if enabled else 'off'} the transmitter of {transponder}",
            {"transponder": transponder, "enabled": enabled},
            verification="the host's own flag is read back",
            undo="as it was before",
            required=required,
            expected_seconds=HOST_CALL_EXPECTED_S,
        )

    def program(self, writes: Mapping[str, Sequence[PlannedChange]]) -> None:
        """Write the cells of each device."""
        for device, cells in writes.items():
            if cells:
                written = self._inventory.devices[device]
                settle = written.settle_ms / 1000
                joins = written.kind is DeviceKind.SWITCH
                what = f"connections of {_counted(len(cells), 'port')}" if joins else _counted(len(cells), "PUC")
                self._add(
                    Do.PROGRAM,
                    f"program {what} of {device}",
                    {"device": device, "changes": [[c.puc, c.before, c.after] for c in cells]},
                    precondition=f"{device} is in the same state as when this plan was made",
                    verification="read back, and verified by the light that arrives"
                    if joins
                    else "verified by the light that arrives",
                    undo=f"write the {len(cells)} earlier states",
                    expected_seconds=settle + HOST_CALL_EXPECTED_S,
                )

    def verify(self, circuits: Sequence[str], kept: Sequence[str]) -> None:
        """Require that each receiver hears its intended transmitter, and that no other circuit has changed."""
        self._add(
            Do.VERIFY,
            f"verify {_counted(len(circuits), 'new circuit')} and {_counted(len(kept), 'other')} on the same devices",
            {"circuits": list(circuits), "kept": list(kept)},
            verification="each receiver hears the intended transmitter",
            undo="nothing was done",
            expected_seconds=LIGHT_EXPECTED_S,
        )

    def confirm(self, devices: Sequence[str]) -> None:
        """Keep the change on devices with a revert timer of their own."""
        if devices:
            self._add(Do.CONFIRM, f"confirm {', '.join(devices)}", {"devices": list(devices)}, undo="by programming")

    def assign(self, before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> None:
        """Record which rank runs on which accelerator."""
        self._add(
            Do.ASSIGN,
            f"record {_placed_words(after)}",
            {
                "assignment": {job: list(ranks) for job, ranks in after.items()},
                "before": {job: list(ranks) for job, ranks in before.items()},
            },
            undo="record the previous placement",
        )

    def jobs(self, jobs: Iterable[str], act: str) -> None:
        """Pause or resume some jobs, as far as they have hooks."""
        for job in jobs:
            self.job(job, act)

    def job(self, job: str, act: str) -> None:
        """Pause or resume a job, if it has a hook."""
        if not hooked(self._inventory, job):
            return
        pauses = act == PAUSE
        self._add(
            Do.JOB,
            f"{act} job {job}",
            {"job": job, "act": act, "state": PAUSED if pauses else RUNNING},
            precondition="" if pauses else "its new circuits are verified",
            verification="its hook reports it",
            undo=f"{RESUME} it, unless it was paused before" if pauses else f"{PAUSE} it",
            required=pauses,  # When a job is resumed all light is proved, so a failure is no reason to undo.
            expected_seconds=JOB_EXPECTED_S,
        )

    def set(self, setting: Settable, before: Value | None, after: Value, disturbs: Sequence[str]) -> None:
        """Set one setting; ``disturbs`` names the circuits and jobs that it may disturb."""
        name, component = setting.setting.name, setting.component.id
        back = f"set {setting.text(before)}" if before is not None and setting.setting.reversible(after) else "none"
        follows_s = setting.setting.follows_s.get(after, 0.0)
        self._add(
            Do.SET,
            f"set {component} {setting.text(after)}"
            + ("" if before is None else f" (it shows {setting.setting.shown(before) or 'nothing'})"),
            {"component": component, "setting": name, "before": before, "after": after, "disturbs": list(disturbs)},
            precondition="" if before is None else f"{component} shows {setting.text(before)}",
            verification="read back",
            undo=back,
            expected_seconds=HOST_CALL_EXPECTED_S + follows_s / 6,
        )

    def _add(
        self,
        do: Do,
        title: str,
        data: Mapping[str, object],
        *,
        precondition: str = "",
        verification: str = "",
        undo: str = "",
        required: bool = True,
        expected_seconds: float = 0.0,
    ) -> None:
        stage = self._stage_of(do, data) if do in SIDE_BY_SIDE else 0
        self.steps.append(
            Step(
                id=str(len(self.steps) + 1),
                do=do,
                title=title,
                data=data,
                precondition=precondition,
                verification=verification,
                undo=undo,
                required=required,
                expected_seconds=expected_seconds,
                stage=stage,
            )
        )

    def _stage_of(self, do: Do, data: Mapping[str, object]) -> int:
        """The stage of the steps before it, if they have its kind and touch other things; otherwise a new stage."""
        if self.steps and self.steps[-1].do is do:
            last = self.steps[-1].stage
            if data[SIDE_BY_SIDE[do]] not in [s.data[SIDE_BY_SIDE[do]] for s in self.steps if s.stage == last]:
                return last
        return max((step.stage for step in self.steps), default=0) + 1


def _placed_words(names: Mapping[str, Sequence[str]]) -> str:
    """The recorded jobs, orders of lanes, phases and filler jobs, in words that follow ``record``."""
    jobs = [name for name in names if is_job(name)]
    ordered = [name.removeprefix(PREFIX) for name in names if is_order(name)]
    phases = [f"{name.removeprefix(PHASE)} ({' '.join(names[name]) or 'first'})" for name in names if is_phase(name)]
    fillers = [name.removeprefix(FILLER) for name in names if is_stopped_filler(name)]
    said = [f"where {', '.join(jobs)} {'runs' if len(jobs) == 1 else 'run'}"] if jobs else []
    said += [f"where the lanes of {', '.join(ordered)} lead"] if ordered else []
    said += [f"whether {', '.join(fillers)} {'runs' if len(fillers) == 1 else 'run'}"] if fillers else []
    said += [f"the phase of {', '.join(phases)}"] if phases else []
    return " and ".join(said)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
