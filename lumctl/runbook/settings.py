"""Single settings in a runbook: whether they can be understood, and a simulator brought to where they began."""

from collections.abc import Iterable, Mapping
from typing import Any

from lumctl.change import settings
from lumctl.change.disturbance import disturbed
from lumctl.change.plan import Do, Step
from lumctl.change.settings import Setting, same, settable, setting_of
from lumctl.context import Context
from lumctl.errors import UsageError
from lumctl.inventory.components import find_component
from lumctl.inventory.model import Inventory


def require_setting(inventory: Inventory, where: str, data: Mapping[str, Any]) -> None:
    """Require that a step names a component, a setting of it and values that it may have.

    Raises:
        UsageError: it does not; ``where`` is named.
    """
    try:
        setting = setting_of(inventory, find_component(inventory, str(data["component"])), str(data["setting"]))
        given = [data[key] for key in ("after", "before") if key == "after" or data[key] is not None]
        odd = [value for value in given if not _has_kind(setting, value)]
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", hint=error.hint) from None
    if odd:
        raise UsageError(f"{where}: {odd[0]!r} is no value of {setting.name}", hint=f"such as {setting.form}")


def _has_kind(setting: Setting, value: Any) -> bool:
    """Whether a value reads back as itself: a number as a number, a switch as true or false."""
    meant = setting.parse(settings.shown(value))
    return same(meant, value) and isinstance(meant, bool) is isinstance(value, bool)


def seed_settings(context: Context, steps: Iterable[Step]) -> list[Step]:
    """Steps that make a fresh simulator show what each setting of a runbook was before."""
    seeds: dict[tuple[str, str], Step] = {}
    for step in steps:
        data = step.data
        key = (str(data.get("component")), str(data.get("setting")))
        if step.do is not Do.SET or key in seeds or data["before"] is None:
            continue
        setting = settable(context.inventory, context.devices, *key)
        if same(setting.read(), data["before"]):
            continue
        used = [each.name for each in disturbed(context, setting.component, key[1], data["before"])]
        seeds[key] = Step(
            f"seed-set-{len(seeds) + 1}",
            Do.SET,
            f"set {key[0]} {setting.text(data['before'])}",
            {"component": key[0], "setting": key[1], "before": None, "after": data["before"], "disturbs": used},
        )
    return list(seeds.values())
