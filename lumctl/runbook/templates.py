"""Makes a runbook of intents, with parameters for the next use, from a recorded run."""

from collections.abc import Mapping
from typing import Any

from lumctl.change.plan import Do
from lumctl.errors import UsageError
from lumctl.runbook.document import SCHEMA, Runbook
from lumctl.runbook.intents import BEST, Intends
from lumctl.store import Act
from lumctl.time_text import length_text

Parameters = dict[str, dict[str, Any]]


def template_of(runbook: Runbook) -> dict[str, Any]:
    """The intents of a recorded run, to use with another accelerator, on another rack, at another time.

    Raises:
        UsageError: the run has no intent that can be repeated; for example, it changed policies.
    """
    recorded = runbook.document["recorded"]
    parameters: Parameters = {"rack": _parameter("the rack to change", runbook.rack)}
    intents = _intents(runbook, parameters)
    if not intents:
        raise UsageError(
            f"{runbook.id} ({runbook.title}) has no intent that could be repeated elsewhere",
            hint=f"to export its steps as recorded: lumctl runbook export {runbook.id} --out FILE",
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
    """The intent of a run that moved jobs or circuits; ``None`` for any other run."""
    if runbook.undoes is not None:
        parameters["run"] = _parameter("the run to undo", runbook.undoes)
        return {"do": str(Intends.ROLLBACK), "run": "${run}"}
    if runbook.replacements:
        return _swap(runbook, parameters)
    if runbook.document["recorded"].get("kind") == "swap":
        parameters["avoid"] = {"what": "the components to route circuits around; separate several with commas"}
        return {"do": str(Intends.REROUTE), "avoid": "${avoid}"}
    return None


def _swap(runbook: Runbook, parameters: Parameters) -> dict[str, Any]:
    failed = ",".join(replacement.failed for replacement in runbook.replacements)
    spare = ",".join(replacement.spare for replacement in runbook.replacements)
    parameters["failed"] = _parameter("the accelerator to replace; separate several with commas", failed)
    parameters["spare"] = _parameter(f"the spare to use, or {BEST}; the recorded run used {spare}", BEST)
    return {"do": str(Intends.SWAP), "failed": "${failed}", "spare": "${spare}"}


def _set_again(settings: Mapping[str, Any], parameters: Parameters) -> list[dict[str, Any]]:
    """A step for each component; if there is only one component, a parameter replaces its name."""
    do = str(Intends.DEVICE_SET)
    if len(settings) > 1:
        return [{"do": do, "component": component, "settings": values} for component, values in settings.items()]
    component, values = next(iter(settings.items()))
    parameters["component"] = _parameter("the component to set", component)
    return [{"do": do, "component": "${component}", "settings": values}]


def _act(data: Mapping[str, Any], parameters: Parameters) -> dict[str, Any] | None:
    if data["act"] == Act.POLICY:
        return None
    parameters["component"] = _parameter("the component concerned", data["component"])
    about = {"component": "${component}"}
    if "comment" in data:
        parameters["comment"] = _parameter("reason; everyone can see it", data["comment"])
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
    """The settings that were changed, by component: single settings, and cells that an operator set."""
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
