"""Finds the parts of an optical channel on its chassis: its transceiver, its lanes, its logical channels."""

from dataclasses import dataclass
from xml.etree.ElementTree import Element

from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.netconf import NetconfClient
from lumctl_openconfig.leaf import NAMES, Leaf, PathStep, component, same_word, text_at

_MOST_PARTS = 16
_CHANNELS = (PathStep("t", "terminal-device"), PathStep("t", "logical-channels"), PathStep("t", "channel"))


@dataclass(frozen=True, slots=True)
class PortPlace:
    """An optical channel and its parts, as one ``get`` showed them.

    ``transceiver`` is the component that holds the optical channel. ``lanes`` are the physical channels of the
    transceiver that carry it. ``logical`` are the logical channels that are assigned to it.
    """

    channel: Element
    transceiver: Element | None
    lanes: tuple[Element, ...]
    logical: tuple[Element, ...]

    def switch(self) -> tuple[Leaf, ...]:
        """The leaves that switch the transmitter; empty if the device shows none."""
        if self.transceiver is not None:
            module = (*component(_name(self.transceiver)), PathStep("x", "transceiver"))
            indexes = [text_at(lane, "x:index") for lane in self.lanes if _has(lane, "x", "tx-laser")]
            if indexes:
                lanes = (*module, PathStep("x", "physical-channels"))
                return tuple(
                    Leaf((*lanes, PathStep("x", "channel", "index", index)), "tx-laser", same_word)
                    for index in indexes
                    if index
                )
            if _has(self.transceiver.find("x:transceiver", NAMES), "x", "enabled"):
                return (Leaf(module, "enabled", same_word),)
        *above, channel = _CHANNELS
        return tuple(
            Leaf((*above, PathStep(channel.prefix, channel.name, "index", index)), "admin-state", same_word)
            for each in self.logical
            if _has(each, "t", "admin-state") and (index := text_at(each, "t:index"))
        )


def find(client: NetconfClient, device: str, name: str) -> PortPlace:
    """Find an optical channel and its parts.

    Raises:
        DeviceRefusedError: the chassis has no such component.
    """
    data = client.get(_asked(name) + _logical_channels())
    channel = _components(data).get(name)
    if channel is None:
        raise DeviceRefusedError(
            f"{device}: the chassis has no component {name!r}",
            hint="give it in the transponder's `module` in the inventory: CHASSIS/COMPONENT",
        )
    transceiver = _transceiver(client, channel, name)
    logical = data.iterfind("t:terminal-device/t:logical-channels/t:channel", NAMES)
    return PortPlace(
        channel,
        transceiver,
        _lanes(transceiver, name) if transceiver is not None else (),
        tuple(each for each in logical if name in _assigned(each)),
    )


def told(element: Element, prefix: str, name: str) -> str | None:
    """The text of a leaf in ``state``, or in ``config`` if ``state`` lacks it."""
    return text_at(element, f"{prefix}:state/{prefix}:{name}") or text_at(element, f"{prefix}:config/{prefix}:{name}")


def _transceiver(client: NetconfClient, channel: Element, name: str) -> Element | None:
    """The first transceiver among: the component itself, its line port, its parent, the module in the line port."""
    if _is_transceiver(channel):
        return channel
    optical = channel.find("t:optical-channel", NAMES)
    port = told(optical, "t", "line-port") if optical is not None else None
    parent = told(channel, "p", "parent")
    near = [each for each in dict.fromkeys((port, parent)) if each and each != name]
    if not near:
        return None
    found = _components(client.get("".join(map(_asked, near))))
    for each in near:
        if each in found and _is_transceiver(found[each]):
            return found[each]
    if port not in found:
        return None
    plugged = [text_at(part, "p:name") for part in found[port].iterfind("p:subcomponents/p:subcomponent", NAMES)]
    # Bounded, because each name makes the next request longer.
    names = [each for each in plugged if each and each != name][:_MOST_PARTS]
    parts = _components(client.get("".join(map(_asked, names)))) if names else {}
    modules = [part for part in parts.values() if _is_transceiver(part)]
    own = [module for module in modules if any(_carries(lane, name) for lane in _every_lane(module))]
    chosen = own or modules
    return chosen[0] if len(chosen) == 1 else None


def _lanes(transceiver: Element, name: str) -> tuple[Element, ...]:
    """The lanes that state that they carry the optical channel; all lanes, if none states what it carries."""
    every = _every_lane(transceiver)
    if not any(told(lane, "x", "associated-optical-channel") for lane in every):
        return every
    return tuple(lane for lane in every if _carries(lane, name))


def _every_lane(transceiver: Element) -> tuple[Element, ...]:
    return tuple(transceiver.iterfind("x:transceiver/x:physical-channels/x:channel", NAMES))


def _carries(lane: Element, name: str) -> bool:
    return told(lane, "x", "associated-optical-channel") == name


def _assigned(logical: Element) -> set[str | None]:
    path = "t:logical-channel-assignments/t:assignment"
    return {told(each, "t", "optical-channel") for each in logical.iterfind(path, NAMES)}


def _is_transceiver(element: Element) -> bool:
    return element.find("x:transceiver", NAMES) is not None


def _has(element: Element | None, prefix: str, leaf: str) -> bool:
    return element is not None and told(element, prefix, leaf) is not None


def _name(element: Element) -> str:
    return text_at(element, "p:name") or ""


def _components(data: Element) -> dict[str, Element]:
    return {_name(each): each for each in data.iterfind("p:components/p:component", NAMES)}


def _asked(name: str) -> str:
    outer, inner = component(name)
    return outer.around(inner.around(""))


def _logical_channels() -> str:
    text = "<index/><config/><state/><otn/><logical-channel-assignments/>"
    for step in reversed(_CHANNELS):
        text = step.around(text)
    return text
