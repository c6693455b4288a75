"""From what was done to what was meant: a recorded run as a runbook of intents, with parameters for the next time."""

from collections.abc import Mapping
from typing import Any

from lumctl.change.plan import Do
from lumctl.errors import UsageError
from lumctl.inventory.durations import length_text
from lumctl.runbook.document import SCHEMA, Runbook
from lumctl.runbook.intents import BEST, Intends
from lumctl.store import Act

Parameters = dict[str, dict[str, Any]]


def template_of(runbook: Runbook) -> dict[str, Any]:
    """The intents of a recorded run: for another accelerator, another rack, another day.

    Raises:
        UsageError: it has none that can be meant again, such as a change of the policies.
    """
    recorded = runbook.document["recorded"]
    parameters: Parameters = {"rack": _parameter("the rack to do it on", runbook.rack)}
    intents = _intents(runbook, parameters)
    if not intents:
        raise UsageError(
            f"{runbook.id} ({runbook.title}) has no intent that could be done again elsewhere",
            hint=f"its steps as they were recorded: lumctl runbook export {runbook.id}",
        )
    return {
        "schema": SCHEMA,
        "id": f"{runbook.id}-again",
        "title": f"as {runbook.id}: {runbook.title}",
        "made_from": {"run": runbook.id, "at": recorded["at"], "by": recorded["by"], "outcome": runbook.outcome},
        "parameters": parameters,
        "rack": "${rack}",
        "intents": intents,
    }


def _intents(runbook: Runbook, parameters: Parameters) -> list[dict[str, Any]]:
    moved = _moved(runbook, parameters)
    if moved is not None:
        return [moved]
    acts = [recorded.step.data for recorded in runbook.steps if recorded.step.do is Do.RECORD]
    if acts:
        return [found for data in acts if (found := _act(data, parameters)) is not None]
    settings = _settings(runbook)
    if settings:
        return _set_again(settings, parameters)
    if any(recorded.step.do in {Do.PROGRAM, Do.ASSIGN} for recorded in runbook.steps):
        return [{"do": str(Intends.FABRIC_APPLY), "rack": "${rack}"}]
    return []


def _moved(runbook: Runbook, parameters: Parameters) -> dict[str, Any] | None:
    """What was meant by a run that moved jobs or circuits; ``None`` for any other."""
    if runbook.undoes is not None:
        parameters["run"] = _parameter("the run to take back", runbook.undoes)
        return {"do": str(Intends.ROLLBACK), "run": "${run}"}
    if runbook.replacements:
        return _swap(runbook, parameters)
    if runbook.document["recorded"].get("kind") == "swap":
        parameters["avoid"] = {"what": "the components to lead circuits round; several with commas"}
        return {"do": str(Intends.REROUTE), "avoid": "${avoid}"}
    return None


def _swap(runbook: Runbook, parameters: Parameters) -> dict[str, Any]:
    failed = ",".join(replacement.failed for replacement in runbook.replacements)
    spare = ",".join(replacement.spare for replacement in runbook.replacements)
    parameters["failed"] = _parameter("the accelerator to replace; several with commas", failed)
    parameters["spare"] = _parameter(f"the spare to take, or {BEST}; {spare} was taken then", BEST)
    return {"do": str(Intends.SWAP), "failed": "${failed}", "spare": "${spare}"}


def _set_again(settings: Mapping[str, Any], parameters: Parameters) -> list[dict[str, Any]]:
    """A step for each component; if there is only one, a parameter replaces it."""
    do = str(Intends.DEVICE_SET)
    if len(settings) > 1:
        return [{"do": do, "component": component, "settings": values} for component, values in settings.items()]
    component, values = next(iter(settings.items()))
    parameters["component"] = _parameter("the component to set", component)
    return [{"do": do, "component": "${component}", "settings": values}]


def _act(data: Mapping[str, Any], parameters: Parameters) -> dict[str, Any] | None:
    if data["act"] == Act.POLICY:
        return None
    parameters["component"] = _parameter("the component that is spoken of", data["component"])
    about = {"component": "${component}"}
    if "comment" in data:
        parameters["comment"] = _parameter("why; shown to everybody", data["comment"])
        about["comment"] = "${comment}"
    if data.get("for_s") is not None:
        about["for"] = length_text(data["for_s"])
    if data.get("rule") is not None:
        about["rule"] = data["rule"]
    does = {
        Act.ACKNOWLEDGE: Intends.ACK,
        Act.UNACKNOWLEDGE: Intends.UNACK,
        Act.OPEN_WINDOW: Intends.MAINTAIN,
        Act.END_WINDOW: Intends.MAINTAIN_END,
    }
    return {"do": str(does[Act(data["act"])]), **about}


def _settings(runbook: Runbook) -> dict[str, dict[str, Any]]:
    """What was set, by component: single settings, and cells that a person set."""
    found: dict[str, dict[str, Any]] = {}
    for recorded in runbook.steps:
        data = recorded.step.data
        if recorded.step.do is Do.SET:
            found.setdefault(str(data["component"]), {})[str(data["setting"])] = data["after"]
        if recorded.step.do is Do.PROGRAM and _by_hand(runbook):
            for cell, _, after in data["changes"]:
                if after in {"=", "x"}:
                    found.setdefault(f"{data['device']}/puc/{cell}", {})["state"] = "cross" if after == "x" else "bar"
                else:
                    found.setdefault(f"{data['device']}/port/{cell}", {})["joined"] = "none" if after == "-" else after
    return found


def _by_hand(runbook: Runbook) -> bool:
    """Whether cells were set by `device set`: a change without circuits of its own."""
    return str(runbook.document["recorded"].get("kind")) == "set"


def _parameter(what: str, default: Any) -> dict[str, Any]:
    return {"what": what, "default": default}
