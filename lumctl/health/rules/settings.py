"""Settings of a GPU that differ from most GPUs of its kind in its rack; they may slow or endanger a whole job."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from lumctl.fleet.readings import GpuReading
from lumctl.health.rulebook import found, verdict
from lumctl.health.rules.cases import GpuCase, Usual
from lumctl.health.states import Finding


@dataclass(frozen=True, slots=True)
class _Setting:
    """One setting: how to read it, and how to print its value. With ``is_switch`` only the value off is a fault."""

    read: Callable[[GpuReading], float | None]
    written: str
    is_switch: bool = False


_SETTINGS: Mapping[str, _Setting] = {
    "ecc": _Setting(lambda gpu: gpu.ecc_enabled, "ECC is off", is_switch=True),
    "persistence": _Setting(lambda gpu: gpu.persistence_enabled, "persistence mode is off", is_switch=True),
    "power-limit": _Setting(lambda gpu: gpu.power_limit_w, "power limit {:g} W"),
    "max-clock": _Setting(lambda gpu: gpu.sm_clock_max_mhz, "maximum SM clock {:g} MHz"),
    "application-clock": _Setting(lambda gpu: gpu.application_clock_mhz, "application clock {:g} MHz"),
}
"""The settings, by the cases of gpu.settings."""


def usual_settings(gpus: Iterable[GpuReading]) -> Mapping[str, Usual]:
    """The values that most GPUs of one model have, by setting; a setting without a majority is omitted."""
    every = tuple(gpus)
    found_: dict[str, Usual] = {}
    for name, setting in _SETTINGS.items():
        limits = verdict("gpu.settings", name).limits
        values = Counter(value for gpu in every if (value := setting.read(gpu)) is not None)
        ((value, alike),) = values.most_common(1) or ((0.0, 0),)
        if alike >= limits["least"] and alike > limits["share"] * values.total():
            found_[name] = Usual(value, alike, values.total())
    return found_


def settings(case: GpuCase) -> Iterator[Finding]:
    """Settings that differ."""
    if case.reading is None:
        return
    for name, usual in case.usual.items():
        setting = _SETTINGS[name]
        value = setting.read(case.reading)
        if value is None or (setting.is_switch and value) or _is_like(value, usual.value, name):
            continue
        expected = "on" if setting.is_switch else f"{usual.value:g}"
        evidence = f"{setting.written.format(value)}; {usual.alike} of {usual.total} GPUs of its model have {expected}"
        yield found(case.id, "gpu.settings", name, evidence, since=case.read_at)


def _is_like(value: float, usual: float, name: str) -> bool:
    return abs(value - usual) <= verdict("gpu.settings", name).limits["tolerance"] * abs(usual)


RULES = (settings,)
