"""Finding the parts of an optical channel, as chassis of different makes and years lay them out."""

import pytest
from lumctl_openconfig.place import find

from lumctl.devices.errors import DeviceRefusedError

CHANNEL = """
<component><name>och</name><state><name>och</name>{parent}</state>
  <t:optical-channel>{line_port}</t:optical-channel></component>"""
MODULE = """
<component><name>{name}</name><x:transceiver>{inside}</x:transceiver></component>"""
LANES = "<x:physical-channels>{}</x:physical-channels>"
PORT = """
<component><name>port</name><subcomponents>{}</subcomponents></component>"""


def channel(*, parent="", port="", where="config"):
    return CHANNEL.format(
        parent=f"<parent>{parent}</parent>" if parent else "",
        line_port=f"<t:{where}><t:line-port>{port}</t:line-port></t:{where}>" if port else "",
    )


def lane(index, *, carries="", laser="true"):
    own = f"<x:associated-optical-channel>{carries}</x:associated-optical-channel>" if carries else ""
    return f"<x:channel><x:index>{index}</x:index><x:state>{own}<x:tx-laser>{laser}</x:tx-laser></x:state></x:channel>"


def module(name, inside=""):
    return MODULE.format(name=name, inside=inside)


def port(*names):
    return PORT.format("".join(f"<subcomponent><name>{name}</name></subcomponent>" for name in names))


def logical(index, optical, *, where="config", state="ENABLED"):
    return f"""
<t:terminal-device><t:logical-channels><t:channel><t:index>{index}</t:index>
  <t:config><t:admin-state>{state}</t:admin-state></t:config><t:logical-channel-assignments><t:assignment>
  <t:index>1</t:index><t:{where}><t:optical-channel>{optical}</t:optical-channel></t:{where}>
</t:assignment></t:logical-channel-assignments></t:channel></t:logical-channels></t:terminal-device>"""


def found(document, components, beside=""):
    place = find(document(components, beside), "d1", "och")
    name = (
        None if place.transceiver is None else place.transceiver.findtext("{http://openconfig.net/yang/platform}name")
    )
    return name, place


def shown(place):
    return ["/".join(step.value or step.name for step in leaf.steps) + f"/{leaf.name}" for leaf in place.switch()]


@pytest.mark.parametrize(
    ("components", "expected"),
    [
        (channel(port="m") + module("m"), "m"),
        (channel(port="m", where="state") + module("m"), "m"),
        (channel(parent="m") + module("m"), "m"),
        (channel(port="m1", parent="m2") + module("m2") + module("m1"), "m1"),
        (channel(port="port") + port("cage", "m") + module("m"), "m"),
        (channel(port="port") + port("m1", "m2") + module("m1") + module("m2"), None),
        (
            channel(port="port")
            + port("m1", "m2")
            + module("m1", LANES.format(lane(0, carries="other")))
            + module("m2", LANES.format(lane(0, carries="och"))),
            "m2",
        ),
        (channel(port="gone"), None),
        (channel(), None),
        (module("och"), "och"),
        (channel(port="och", parent="och"), None),
    ],
    ids=[
        "line port",
        "line port in state only",
        "parent",
        "line port before parent",
        "plugged into the port",
        "two in one port",
        "two in one port, one carries it",
        "a port that is not there",
        "nothing",
        "itself",
        "a circle",
    ],
)
def test_the_transceiver_of_an_optical_channel(document, components, expected):
    assert found(document, components)[0] == expected


def test_a_component_that_is_not_there_is_refused_in_one_question(document):
    chassis = document(channel())
    with pytest.raises(DeviceRefusedError, match="no component 'och-7'"):
        find(chassis, "d1", "och-7")
    assert len(chassis.asked) == 1


@pytest.mark.parametrize(
    ("lanes", "expected"),
    [
        (lane(0) + lane(1), ["0", "1"]),
        (lane(0, carries="other") + lane(1, carries="och"), ["1"]),
        (lane(0, carries="other"), []),
    ],
    ids=["none says what it carries", "one carries it", "it carries another"],
)
def test_the_lanes_of_an_optical_channel(document, lanes, expected):
    _, place = found(document, channel(port="m") + module("m", LANES.format(lanes)))
    assert [each.findtext("{http://openconfig.net/yang/platform/transceiver}index") for each in place.lanes] == expected


def test_the_laser_of_its_own_lanes_switches_it(document):
    inside = LANES.format(lane(3, carries="och") + lane(4, carries="other"))
    _, place = found(document, channel(port="m") + module("m", inside), logical(7, "och"))
    assert shown(place) == ["components/m/transceiver/physical-channels/3/tx-laser"]


def test_the_transceiver_switches_it_where_lanes_show_no_laser(document):
    inside = "<x:config><x:enabled>true</x:enabled></x:config>"
    _, place = found(document, channel(port="m") + module("m", inside), logical(7, "och"))
    assert shown(place) == ["components/m/transceiver/enabled"]


@pytest.mark.parametrize("where", ["config", "state"])
def test_its_logical_channel_switches_it_where_nothing_else_does(document, where):
    beside = logical(7, "och", where=where) + logical(8, "other")
    _, place = found(document, channel(port="m") + module("m"), beside)
    assert shown(place) == ["terminal-device/logical-channels/7/admin-state"]


def test_where_nothing_is_shown_nothing_switches_it(document):
    assert shown(found(document, channel())[1]) == []


def test_a_name_that_is_markup_stays_a_name(document):
    chassis = document(channel())
    with pytest.raises(DeviceRefusedError):
        find(chassis, "d1", "och</name><x:y>&amp;")
    assert "<x:y>" not in chassis.asked[0]
