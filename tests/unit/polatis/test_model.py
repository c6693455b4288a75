"""The switch's data model as XML: what is written, and what is taken for a value."""

import math
import xml.etree.ElementTree as ET

import pytest
from lumctl_polatis import model

from lumctl.devices.types import Alarm, PortReading


def data(content: str) -> ET.Element:
    return ET.fromstring(f'<data xmlns:n="urn:n">{content}</data>')  # noqa: S314 - the text is ours


def joins(*pairs: str) -> ET.Element:
    return data(f'<cross-connects xmlns="{model.NS}">{"".join(pairs)}</cross-connects>')


def test_joins_are_pairs_and_count_from_one():
    pair = "<pair><ingress>1</ingress><egress> 17 </egress></pair>"
    assert model.read_joins(joins(pair)) == {0: 16}
    assert model.read_joins(joins()) == model.read_joins(data("")) == {}
    assert model.read_joins(joins("<pair><ingress>1</ingress></pair>")) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        "<pairs><ingress>1</ingress><egress>17</egress></pairs>",
        "<pair><ingress>0</ingress><egress>17</egress></pair>",
        "<pair><ingress>one</ingress><egress>17</egress></pair>",
        "<pair><egress>17</egress></pair>",
        "<pair><ingress>1</ingress><egress>17</egress></pair><pair><ingress>2</ingress><egress>17</egress></pair>",
    ],
)
def test_what_is_no_join_is_not_guessed(wrong):
    with pytest.raises(ValueError, match=r".+"):
        model.read_joins(joins(wrong))


def test_an_ingress_that_gets_another_egress_keeps_its_entry():
    edit = ET.fromstring(  # noqa: S314 - the text is ours
        f'<config xmlns:nc="urn:nc">{model.edit_joins(((0, 8), (1, 9)), ((0, 9),))}</config>'
    )
    pairs = [(pair.get("{urn:nc}operation"), [leaf.text for leaf in pair]) for pair in edit.iter(f"{{{model.NS}}}pair")]
    assert pairs == [("delete", ["2"]), (None, ["1", "10"])]


def test_labels_are_escaped_and_an_empty_one_goes():
    assert "&lt;a&gt; &amp; b" in model.edit_label(0, "<a> & b")
    assert 'operation="delete"' in model.edit_label(0, "")


def test_ports_powers_and_alarms():
    ports = data(
        f'<port-config xmlns="{model.NS}"><port><port-id>1</port-id><status>ENABLED</status><label>a b</label></port>'
        "<port><port-id>2</port-id><status>DISABLED</status></port>"
        "<port><port-id>3</port-id><status>FAILED</status></port>"
        "<port><port-id>4</port-id><status>UNSUPPORTED</status></port></port-config>"
    )
    assert model.read_ports(ports) == {
        0: PortReading(0, True, label="a b"),  # noqa: FBT003 - what the device says
        1: PortReading(1, False),  # noqa: FBT003
        2: PortReading(2, None, failed=True),
        3: PortReading(3, None),
    }
    power = "<port><port-id>{}</port-id><power>{}</power></port>"
    powers = f'<opm-power xmlns="{model.NS}">{power.format(1, "-3.50")}{power.format(2, "-60.00")}</opm-power>'
    assert model.read_powers(data(powers)) == {0: -3.5, 1: -math.inf}
    with pytest.raises(ValueError, match=r".+"):
        model.read_powers(data(f'<opm-power xmlns="{model.NS}">{power.format(1, "nan")}</opm-power>'))
    alarms = (
        f'<system-alarms xmlns="{model.ALARM_NS}"><alarm><alarm-time>2026-01-02T03:04:05Z</alarm-time>'
        "<alarm-type>NOTIF_SYSTEM</alarm-type><alarm-message>a\n fan</alarm-message></alarm>"
        "<alarm><alarm-time>soon</alarm-time></alarm></system-alarms>"
    )
    assert model.read_alarms(data(alarms)) == (
        Alarm("a fan", source="NOTIF_SYSTEM", since=1767323045.0),
        Alarm("an alarm without a message"),
    )


@pytest.mark.parametrize(
    ("name", "inputs"), [("I-OST-24x24-LU1-DMHNS", 24), ("N-VST-192x192-LU1", 192), ("I-32xCC-X", 32), ("S6000", None)]
)
def test_a_model_name_may_tell_the_inputs(name, inputs):
    assert model.inputs_of(name) == inputs
