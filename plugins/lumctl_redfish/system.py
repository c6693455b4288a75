"""What the documents of one system mean: its power, its draw, and which words its reset takes."""

from dataclasses import dataclass

from lumctl_redfish.document import at, items, link, number, path_of, text

ON_WORDS = ("On", "ForceOn")
OFF_WORDS = ("GracefulShutdown",)
OFF_AT_ONCE_WORDS = ("ForceOff",)
RESTART_WORDS = ("ForceRestart", "PowerCycle")
HEADED = {True: "PoweringOn", False: "PoweringOff"}
"""The state of a system that is on its way to be on, or off."""

_RESET = "#ComputerSystem.Reset"
_PARAMETER = "ResetType"


@dataclass(frozen=True, slots=True)
class Reset:
    """The one action that switches and restarts: where it is, and its words; ``None`` if those are not stated."""

    path: str
    words: frozenset[str] | None
    info: str | None

    def word(self, wanted: tuple[str, ...]) -> str | None:
        """The best of the wanted words that the controller takes; the first where it does not say."""
        if self.words is None:
            return wanted[0]
        return next((word for word in wanted if word in self.words), None)


def state_of(system: object) -> str:
    """The controller's own word for the power state."""
    return text(system, "PowerState")


def is_on(system: object) -> bool | None:
    """Whether the system is on; ``None`` while it is neither on nor off, or does not say."""
    return {"On": True, "Off": False}.get(state_of(system))


def health_of(system: object) -> str:
    """The controller's own word for the health of the system and all in it, or else of the system alone."""
    return text(system, "Status", "HealthRollup") or text(system, "Status", "Health")


def model_of(system: object) -> str:
    """Who made it, and what it is."""
    maker, model = text(system, "Manufacturer"), text(system, "Model")
    return model if model.startswith(maker) else f"{maker} {model}".strip()


def reset_of(system: object) -> Reset | None:
    """The reset action; ``None`` if the system has none."""
    action = at(system, "Actions", _RESET)
    path = path_of(at(action, "target"))
    if path is None:
        return None
    stated = items(action, f"{_PARAMETER}@Redfish.AllowableValues")
    return Reset(path, _words(stated), path_of(at(action, "@Redfish.ActionInfo")))


def words_of_info(info: object) -> frozenset[str] | None:
    """The words of a reset whose parameters are stated in a document of their own."""
    for parameter in items(info, "Parameters"):
        if text(parameter, "Name") == _PARAMETER:
            return _words(items(parameter, "AllowableValues"))
    return None


def watts_of_power(power: object, system: str, *, alone: bool) -> float | None:
    """What a chassis' Power document says that one system draws; ``alone``: nothing else draws from that chassis."""
    controls = items(power, "PowerControl")
    related = [each for each in controls if system in map(link, items(each, "RelatedItem"))]
    if not related and alone:
        related = controls
    return next((watts for each in related if (watts := number(each, "PowerConsumedWatts")) is not None), None)


def next_page(collection: object) -> str | None:
    """Where a collection continues; ``None`` at its end."""
    return path_of(at(collection, "Members@odata.nextLink"))


def _words(stated: list[object]) -> frozenset[str] | None:
    return frozenset(word for word in stated if isinstance(word, str)) or None
