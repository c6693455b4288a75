"""Lint of a runbook file: all its problems at once, each with its line and column."""

from collections.abc import Callable, Mapping
from typing import Any

from lumctl.change.settings import kind_in_words, settings_of
from lumctl.errors import UsageError
from lumctl.health.rulebook import all_rules
from lumctl.inventory.components import Part, find_component
from lumctl.inventory.model import Inventory
from lumctl.inventory.positions import MarkedDict, MarkedList, found, read_yaml
from lumctl.inventory.problems import Mark, Problem, Problems
from lumctl.runbook import lint_steps
from lumctl.runbook.document import SCHEMA
from lumctl.runbook.intents import BEST, FIELDS, PREVIOUS, Field, Intends
from lumctl.runbook.parameters import NAME, PLACE, SECTION, parameters_of, places
from lumctl.swap.settings import forms_of
from lumctl.time_text import length_s

RECORDED_KEYS = (
    "schema",
    "id",
    "title",
    SECTION,
    "recorded",
    "start",
    "replacements",
    "candidates",
    "why",
    "circuits",
    "steps",
    "taken_back",
    "end",
    "journal_head",
)
INTENT_KEYS = ("schema", "id", "title", "made_from", SECTION, "rack", "intents")
_SEVERAL = frozenset({"accelerators", "spares", "settables"})


def lint(text: str, name: str, inventory: Inventory, given: Mapping[str, str] | None = None) -> tuple[Problem, ...]:
    """All problems of a runbook against an inventory, in the order of the file; ``given`` are values of parameters."""
    problems = Problems(name)
    document = read_yaml(text, problems, prose=True)
    if not isinstance(document, MarkedDict):
        if not problems:
            problems.add(
                Mark(1, 1), f"found {found(document)}, expected a runbook", f"a runbook begins with `schema: {SCHEMA}`"
            )
        return problems.error().problems
    if document.get("schema") != SCHEMA:
        mark = document.value_marks.get("schema", document.at)
        problems.add(mark, f"this is not a runbook: it lacks `schema: {SCHEMA}`")
        return problems.error().problems
    if _parameters_fit(document, given or {}, problems):
        _fill(document, {p.name: (given or {}).get(p.name, p.default) for p in parameters_of(document, name)})
    known = INTENT_KEYS if "intents" in document else RECORDED_KEYS
    for key in document:
        if key not in known:
            problems.unknown(document.key_marks[key], "key", str(key), known)
    if "intents" in document:
        _check_intents(document, inventory, problems)
    else:
        lint_steps.check(document, inventory, problems)
    return problems.error().problems if problems else ()


def _parameters_fit(document: MarkedDict, given: Mapping[str, str], problems: Problems) -> bool:
    """Whether every place of a parameter can be filled in; problems of parameters are noted."""
    written = document.get(SECTION)
    if written is None:
        for word in given:
            problems.add(document.at, f"parameter {word!r} does not exist", "it has no `parameters:`")
        return False
    if not isinstance(written, MarkedDict):
        problems.add(document.value_marks[SECTION], f"found {found(written)}, expected names of parameters")
        return False
    fits = [_parameter_fits(written, word, said, problems) for word, said in written.items()]
    for word in given:
        if word not in written:
            problems.unknown(document.key_marks[SECTION], "parameter", word, list(written), listed=True)
    return all(fits) and _places_fit(document, written, problems)


def _places_fit(document: MarkedDict, written: MarkedDict, problems: Problems) -> bool:
    """Whether every place names a parameter; a parameter without a place is noted."""
    used = list(places(document))
    strange = [(path, word) for path, word in used if word not in written]
    for path, word in strange:
        problems.unknown(_mark_at(document, path), "parameter", word, list(written), listed=True)
    for word in written:
        if word not in {place for _, place in used}:
            problems.add(written.key_marks[word], f"parameter {word!r} is not used", f"use it as ${{{word}}}")
    return not strange


def _parameter_fits(written: MarkedDict, word: Any, said: Any, problems: Problems) -> bool:
    mark = written.key_marks[word]
    if not NAME.fullmatch(str(word)):
        problems.add(
            mark,
            f"{word!r} is not a valid parameter name",
            "use lower-case letters, digits and _, beginning with a letter",
        )
        return False
    if not isinstance(said, MarkedDict):
        problems.add(written.value_marks[word], f"found {found(said)}, expected a mapping with `what` and `default`")
        return False
    for key in said:
        if key not in {"what", "default"}:
            problems.unknown(said.key_marks[key], "key", str(key), ("what", "default"))
    if isinstance(said.get("default"), dict | list):
        problems.add(said.value_marks["default"], f"found {found(said['default'])}, expected one value")
        return False
    return True


def _mark_at(document: MarkedDict, path: tuple[Any, ...]) -> Mark:
    """The line and column of a value."""
    container: Any = document
    for key in path[:-1]:
        container = container[key]
    marks = container.item_marks if isinstance(container, MarkedList) else container.value_marks
    mark: Mark = marks[path[-1]]
    return mark


def _fill(container: MarkedDict | MarkedList, values: Mapping[str, Any]) -> None:
    """Replace parameters by their values, and keep the line and column of each value.

    A parameter without a value stays as written; checks of names skip it.
    """
    keys = list(container) if isinstance(container, MarkedDict) else range(len(container))
    for key in keys:
        value = container[key]
        if key in {SECTION, "recorded", "outcome"} and isinstance(container, MarkedDict):
            continue
        if isinstance(value, MarkedDict | MarkedList):
            _fill(value, values)
        elif isinstance(value, str):
            whole = PLACE.fullmatch(value)
            if whole and values.get(whole[1]) is not None:
                container[key] = values[whole[1]]
            elif not whole:
                container[key] = PLACE.sub(lambda at: str(values[at[1]]) if values.get(at[1]) else at[0], value)


def _check_intents(document: MarkedDict, inventory: Inventory, problems: Problems) -> None:
    """Note everything that is wrong with a runbook of intents."""
    for key in ("title", "rack"):
        if not document.get(key):
            problems.add(document.value_marks.get(key, document.at), f"key {key!r} is missing")
    rack = document.get("rack")
    if rack and _is_value(rack) and rack not in inventory.racks:
        problems.unknown(document.value_marks["rack"], "rack", str(rack), inventory.racks, listed=True)
    steps = document["intents"]
    if not isinstance(steps, MarkedList) or not steps:
        problems.add(document.value_marks["intents"], f"found {found(steps)}, expected a list of steps")
        return
    for number, (raw, mark) in enumerate(zip(steps, steps.item_marks, strict=True)):
        _intent(raw, mark, number, inventory, problems)


def _intent(raw: Any, mark: Mark, number: int, inventory: Inventory, problems: Problems) -> None:
    do = _does(raw, mark, problems)
    if do is None:
        return
    fields = FIELDS[do]
    for key, field in fields.items():
        if field.required and raw.get(key) in (None, "", [], {}):
            problems.add(raw.value_marks.get(key, raw.at), f"a {do} step needs {key!r}")
    if do is Intends.DEVICE_SET:
        _settings(raw, inventory, problems)
    for key, value in raw.items():
        if key in {"do", "title"}:
            continue
        if key not in fields:
            problems.unknown(raw.key_marks[key], "key", str(key), list(fields), listed=True)
        elif _is_value(value) and value not in (None, "", [], {}):
            _value(fields[key], value, raw.value_marks[key], inventory, problems)
    if do is Intends.ROLLBACK and raw.get("run") == PREVIOUS and number == 0:
        problems.add(raw.value_marks["run"], f"no step comes before it: `run: {PREVIOUS}`")


def _does(raw: Any, mark: Mark, problems: Problems) -> Intends | None:
    """The action of a step; ``None``, with a problem, if it has none."""
    if not isinstance(raw, MarkedDict):
        problems.add(mark, f"found {found(raw)}, expected a step with `do`")
    elif "do" not in raw:
        problems.add(raw.at, "key 'do' is missing here", f"one of: {', '.join(Intends)}")
    elif raw["do"] not in set(Intends):
        problems.unknown(raw.value_marks["do"], "intent", str(raw["do"]), [each.value for each in Intends], listed=True)
    else:
        return Intends(raw["do"])
    return None


def _settings(raw: MarkedDict, inventory: Inventory, problems: Problems) -> None:
    """Note settings that the component cannot have."""
    settings, name = raw.get("settings"), raw.get("component")
    if settings is None or name is None:
        return
    if not isinstance(settings, MarkedDict):
        what = f"found {found(settings)}, expected settings with their values"
        problems.add(raw.value_marks["settings"], what, "for example `transmit: off`")
        return
    try:
        component = find_component(inventory, str(name)) if _is_value(name) else None
    except UsageError:
        return  # reported for the component itself
    forms = forms_of(inventory, component)[0] if component else {}
    for word in settings:
        if component and word not in forms:
            problems.unknown(settings.key_marks[word], "setting", str(word), list(forms), listed=True)


def _is_value(value: Any) -> bool:
    """Whether this is a value, not the place of a parameter that has no value yet."""
    return not (isinstance(value, str) and PLACE.search(value))


def _value(field: Field, value: Any, mark: Mark, inventory: Inventory, problems: Problems) -> None:
    names = value if isinstance(value, list) else str(value).split(",")
    check_names = _NAMES.get(field.kind)
    if check_names is not None:
        for name in names if field.kind in _SEVERAL else [str(value)]:
            check_names(str(name).strip(), mark, inventory, problems)
    elif field.kind == "flag" and not isinstance(value, bool):
        problems.add(mark, f"found {found(value)}, expected true or false")
    elif field.kind == "length":
        try:
            length_s(str(value))
        except UsageError as error:
            problems.add(mark, error.message, error.hint)


def _accelerator(name: str, mark: Mark, inventory: Inventory, problems: Problems) -> None:
    if name not in inventory.accelerators and name not in inventory.hosts:
        problems.unknown(mark, "accelerator", name, [*inventory.accelerators, *inventory.hosts])


def _spare(name: str, mark: Mark, inventory: Inventory, problems: Problems) -> None:
    if name != BEST and name not in inventory.accelerators:
        problems.unknown(mark, "spare", name, [*inventory.accelerators, BEST])


def _job(name: str, mark: Mark, inventory: Inventory, problems: Problems) -> None:
    if name not in inventory.controlled:
        problems.unknown(mark, "job", name, inventory.controlled)


def _rack(name: str, mark: Mark, inventory: Inventory, problems: Problems) -> None:
    if name not in inventory.racks:
        problems.unknown(mark, "rack", name, inventory.racks, listed=True)


def _component(name: str, mark: Mark, inventory: Inventory, problems: Problems) -> None:
    groups: tuple[Mapping[str, Any], ...] = (
        inventory.racks,
        inventory.hosts,
        inventory.accelerators,
        inventory.transponders,
        inventory.devices,
    )
    names = [known for group in groups for known in group]
    # A circuit is named after its job. Which circuits exist depends on where the jobs run.
    if name not in names and name.partition("/")[0] not in inventory.jobs:
        problems.unknown(mark, "component", name, names)


def _settable(name: str, mark: Mark, inventory: Inventory, problems: Problems) -> None:
    try:
        component = find_component(inventory, name)
    except UsageError as error:
        problems.add(mark, error.message, error.hint)
        return
    if (
        component.part is Part.DEVICE
        and not forms_of(inventory, component)[0]
        and not settings_of(inventory, component)
    ):
        problems.add(mark, f"{name} is {kind_in_words(inventory, component)}: it has no settings")


def _rule(name: str, mark: Mark, _inventory: Inventory, problems: Problems) -> None:
    rules = all_rules()
    if name not in rules:
        problems.unknown(mark, "rule", name, list(rules))


_NAMES: Mapping[str, Callable[[str, Mark, Inventory, Problems], None]] = {
    "accelerators": _accelerator,
    "spares": _spare,
    "job": _job,
    "rack": _rack,
    "component": _component,
    "settable": _settable,
    "settables": _settable,
    "rule": _rule,
}
