"""The figures of ``run.py``, from what its ranks wrote: step times beside the model, the latency of a change."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import ranks
from ranks import RankStep, Stretch

from lumctl.training.phase_model import BoundaryTimes, ChangeMode, StepTimes

RAILS = (range(0, 8, 2), range(1, 8, 2))
"""The ranks of each rail: their light changes together."""
Steps = Sequence[Sequence[RankStep]]
"""By step, what each rank wrote."""


class Latency(NamedTuple):
    """What a change costs beyond the device's own time, in seconds, from the last request of a rail's ranks."""

    first_s: list[float]
    """Until the first rank may go on."""
    last_s: list[float]
    """Until the last may."""
    coordinator_s: list[float]
    """The part between the coordinator's order to the gateway and its answer."""


NAMES = {
    "first_s": "first rank goes on",
    "last_s": "last rank goes on",
    "coordinator_s": "gateway and device",
}


class Measured(NamedTuple):
    """The steps of a block: the median time of a step, and of the window before each of its phases, in seconds."""

    step_s: float
    windows_s: tuple[float, ...]


def read(folder: Path, of: str) -> list[list[RankStep]]:
    """The steps that all ranks wrote, of the job or of torchrun."""
    written = [_rank_steps(path) for path in sorted(folder.glob(f"{of}-*.jsonl"))]
    return [list(step) for step in zip(*written, strict=True)]


def _rank_steps(path: Path) -> list[RankStep]:
    rows = (json.loads(line) for line in path.read_text().splitlines())
    return [RankStep(v, ms, at, [Stretch(*each) for each in stretches], s) for v, ms, at, stretches, s in rows]


def of_block(steps: Steps, variant: str, change_ms: int) -> Steps:
    """The steps of a block that are measured, in their order."""
    own = [step for step in steps if (step[0].variant, step[0].change_ms) == (variant, change_ms)]
    return own[ranks.SETTLED :]


def latency(steps: Steps, change_ms: int) -> Latency:
    """The latency of the changes that idle ranks asked for."""
    found, device_s = Latency([], [], []), change_ms / 1000
    for step in of_block(steps, ranks.IDLE, change_ms):
        for rail in RAILS:
            own = [step[rank].stretches[0] for rank in rail]
            asked = max(each.asked_s for each in own) + device_s
            found.first_s.append(min(each.first_s for each in own) - asked)
            found.last_s.append(max(each.first_s for each in own) - asked)
            found.coordinator_s.append(step[rail[0]].change_s - device_s)
    return found


def measured(steps: Steps) -> Measured:
    """The median step and windows of a block."""
    took = [after.began_s - before.began_s for a, b in pairwise(steps) for before, after in zip(a, b, strict=True)]
    windows = zip(*(_windows(a, b) for a, b in pairwise(steps)), strict=True)
    return Measured(median(took), tuple(median(each) for each in windows))


def _windows(step: Sequence[RankStep], after: Sequence[RankStep]) -> tuple[float, ...]:
    """The windows before the phases of a step's end and the next step's begin: the shorter of both rails'."""
    stretches = [[*one.stretches, other.stretches[0]] for one, other in zip(step, after, strict=True)]
    return tuple(
        min(
            BoundaryTimes(
                [stretches[rank][at].left_s for rank in rail], [stretches[rank][at + 1].asked_s for rank in rail]
            ).window_s
            for rail in RAILS
        )
        for at in range(len(stretches[0]) - 1)
    )


def lines(job: Steps, bare: Steps) -> Iterator[str]:
    """All figures, as lines of text."""
    idle = {change_ms: latency(job, change_ms) for change_ms in ranks.IDLE_MS}
    yield "change of light for 8 ranks that wait idle, beyond the device's time, ms: median, 10th and 99th percentile"
    for change_ms, found in idle.items():
        for name, values in found._asdict().items():
            tenth, _, ninety_ninth = (sorted(values)[int(part * len(values))] for part in (0.1, 0.5, 0.99))
            times = f"{_ms(median(values)):>6}  {_ms(tenth):>6}  {_ms(ninety_ninth):>6}"
            yield f"  {change_ms:3} ms per change, {NAMES[name]:22} {times}  ({len(values)} changes)"
    added_s = median(idle[ranks.IDLE_MS[-1]].last_s)
    own = of_block(bare, ranks.BARE, 0)
    yield f"step, ms: bare gloo under torchrun {_ms(measured(own).step_s)}"
    for change_ms in ranks.CHANGES_MS:
        yield from _at(job, change_ms, change_ms / 1000 + added_s)


def _at(job: Steps, change_ms: int, change_s: float) -> Iterator[str]:
    """The figures at one time of a change, beside the model with changes of ``change_s``."""
    found = {variant: measured(of_block(job, variant, change_ms)) for variant in ranks.VARIANTS}
    still = found[ranks.CONNECTED]
    windows_s = tuple(max(0.0, each) for each in still.windows_s)
    model = StepTimes(sum(windows_s), max(0.0, still.step_s - sum(windows_s)), windows_s)
    yield f"  {change_ms:3} ms per change: " + ", ".join(
        f"{variant} {_ms(found[variant].step_s)}" for variant in (ranks.CONNECTED, ranks.LIT)
    )
    for mode in ChangeMode:
        step_s, meant_s = found[mode].step_s, model.cost(change_s, mode).step_s
        yield (
            f"    {mode:9} {_ms(step_s):>6}, {step_s / still.step_s:.3f} of no phases; "
            f"model {_ms(meant_s):>6}, deviation {100 * (step_s / meant_s - 1):+.1f} %"
        )
    allowed_s = sum(min(change_s, window_s) for window_s in windows_s)
    hidden_s = found[ranks.ON_DEMAND].step_s - found[ranks.AHEAD].step_s
    yield f"    ahead hides {_ms(hidden_s)} of {_ms(allowed_s)} that windows allow: {100 * hidden_s / allowed_s:.0f} %"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f}"
