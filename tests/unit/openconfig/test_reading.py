"""What devices show as a reading: units, no light, what is missing, and what makes no sense."""

import math

import pytest
from lumctl_openconfig.place import find
from lumctl_openconfig.transponder import reading

from lumctl.devices.types import OpticsReading

NOTHING = "<component><name>och</name><state><name>och</name></state></component>"


def read(document, optical="", lane="", module="", case="", otn="", frequency=""):
    components = f"""
<component><name>och</name><t:optical-channel>
  <t:config><t:line-port>m</t:line-port>{frequency}</t:config><t:state>{optical}</t:state></t:optical-channel></component>
<component><name>m</name><state>{case}</state><x:transceiver><x:state>{module}</x:state>
  <x:physical-channels>{lane}</x:physical-channels>THRESHOLDS</x:transceiver></component>"""
    beside = f"""
<t:terminal-device><t:logical-channels><t:channel><t:index>1</t:index><t:otn><t:state>{otn}</t:state></t:otn>
  <t:logical-channel-assignments><t:assignment><t:index>1</t:index><t:config>
  <t:optical-channel>och</t:optical-channel></t:config></t:assignment></t:logical-channel-assignments>
</t:channel></t:logical-channels></t:terminal-device>"""
    return lambda thresholds="": reading(
        find(document(components.replace("THRESHOLDS", thresholds), beside), "d1", "och"), None, 5.0
    )


def instant(name, value, prefix="t"):
    return f"<{prefix}:{name}><{prefix}:instant>{value}</{prefix}:instant></{prefix}:{name}>"


def lane(index, content):
    return f"<x:channel><x:index>{index}</x:index><x:state>{content}</x:state></x:channel>"


def limits(severity, **values):
    leaves = "".join(
        f"<x:{name.replace('_', '-')}>{value}</x:{name.replace('_', '-')}>" for name, value in values.items()
    )
    return (
        f"<x:threshold><x:severity>{severity}</x:severity>"
        f"<x:state><x:severity>{severity}</x:severity>{leaves}</x:state></x:threshold>"
    )


def test_a_component_that_shows_nothing_is_a_reading_of_nothing(document):
    assert reading(find(document(NOTHING), "d1", "och"), None, 5.0) == OpticsReading(5.0)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("-3.25", -3.25),
        (" 1.5 ", 1.5),
        ("0.00", 0.0),
        ("-40.00", -math.inf),
        ("-99.99", -math.inf),
        ("-inf", -math.inf),
        ("-39.99", -39.99),
        ("nan", None),
        ("inf", None),
        ("N/A", None),
        ("", None),
    ],
)
def test_powers_and_no_light(document, shown, expected):
    assert read(document, instant("input-power", shown))().rx_power_dbm == expected


def test_a_device_that_keeps_statistics_only_gives_the_mean(document):
    stats = "<t:input-power><t:avg>-3</t:avg><t:min>-9</t:min><t:max>-1</t:max></t:input-power>"
    assert read(document, stats)().rx_power_dbm == -3
    both = stats.replace("<t:avg>", "<t:instant>-4</t:instant><t:avg>")
    assert read(document, both)().rx_power_dbm == -4


def test_the_optical_channel_goes_before_its_lanes_and_these_before_the_module(document):
    lanes = lane(0, instant("input-power", -5, "x")) + lane(1, instant("input-power", -7, "x"))
    module = instant("input-power", -2, "x")
    assert read(document, instant("input-power", -9), lanes, module)().rx_power_dbm == -9
    assert read(document, "", lanes, module)().rx_power_dbm == -7
    assert read(document, "", "", module)().rx_power_dbm == -2


def test_the_worst_lane_is_what_is_told(document):
    content = "{}{}<x:rx-los>{}</x:rx-los><x:tx-failure>false</x:tx-failure>"
    lanes = [
        lane(
            0, content.format(instant("laser-bias-current", 60, "x"), instant("laser-temperature", 40.5, "x"), "false")
        ),
        lane(
            1, content.format(instant("laser-bias-current", 80, "x"), instant("laser-temperature", 45.5, "x"), "true")
        ),
    ]
    optics = read(document, "", "".join(lanes))()
    assert (optics.bias_ma, optics.temperature_c, optics.rx_los, optics.tx_fault) == (80, 45.5, True, False)


def test_the_case_is_as_warm_as_it_says_where_no_laser_says_more(document):
    case = "<temperature><instant>33.5</instant></temperature><mfg-name>ACME</mfg-name><part-no>Z1</part-no>"
    optics = read(document, case=case)()
    assert (optics.temperature_c, optics.vendor, optics.part) == (33.5, "ACME", "Z1")
    named = read(document, case=case, module="<x:vendor>OWN</x:vendor><x:vendor-part>P2</x:vendor-part>")()
    assert (named.vendor, named.part) == ("OWN", "P2")


def test_error_rates_of_the_line_go_before_those_of_the_module(document):
    module = instant("pre-fec-ber", "0.001", "x") + instant("supply-voltage", "3.29", "x")
    module += "<x:fec-uncorrectable-words>3</x:fec-uncorrectable-words>"
    line = instant("pre-fec-ber", "0.000000000000000012") + instant("post-fec-ber", "0.0")
    line += "<t:fec-uncorrectable-blocks>18446744073709551615</t:fec-uncorrectable-blocks>"
    both, alone = read(document, module=module, otn=line)(), read(document, module=module)()
    assert (both.pre_fec_ber, both.post_fec_ber, both.fec_uncorrectable) == (1.2e-17, 0.0, 2**64 - 1)
    assert (alone.pre_fec_ber, alone.post_fec_ber, alone.fec_uncorrectable) == (1e-3, None, 3)
    assert alone.voltage_v == 3.29


@pytest.mark.parametrize("words", ["-1", "many", "٣", "1e9"])
def test_a_counter_that_is_no_number_is_none(document, words):
    otn = f"<t:fec-uncorrectable-blocks>{words}</t:fec-uncorrectable-blocks>"
    assert read(document, otn=otn)().fec_uncorrectable is None


def test_what_the_transmitter_was_told_is_read_from_the_state_or_else_the_configuration(document):
    configured = "<t:frequency>193100000</t:frequency><t:target-output-power>-1.00</t:target-output-power>"
    assert read(document, frequency=configured)().frequency_mhz == 193_100_000
    applied = read(document, "<t:frequency>193200000</t:frequency>", frequency=configured)()
    assert (applied.frequency_mhz, applied.target_power_dbm) == (193_200_000, -1.0)
    lane_only = lane(0, "<x:output-frequency>195000000</x:output-frequency>")
    assert read(document, "", lane_only)().frequency_mhz == 195_000_000


def test_thresholds_by_their_severities(document):
    stated = limits("a:CRITICAL", input_power_upper="5.0", input_power_lower="-20.5", output_power_lower="-9")
    stated += limits("a:WARNING", input_power_lower="-17", laser_bias_current_upper="90", module_temperature_upper="70")
    stated += limits("a:MINOR", input_power_lower="-1") + limits("a:UNKNOWN", input_power_lower="-2")
    assert read(document)(f"<x:thresholds>{stated}</x:thresholds>").thresholds == {
        "rx_power_high_alarm": 5.0,
        "rx_power_low_alarm": -20.5,
        "tx_power_low_alarm": -9.0,
        "rx_power_low_warning": -17.0,
        "bias_high_warning": 90.0,
        "temperature_high_warning": 70.0,
    }


def test_lesser_severities_stand_in_for_those_that_are_not_stated(document):
    stated = limits("MAJOR", input_power_lower="-20") + limits("MINOR", input_power_lower="-17")
    found = read(document)(f"<x:thresholds>{stated}</x:thresholds>").thresholds
    assert found == {"rx_power_low_alarm": -20.0, "rx_power_low_warning": -17.0}


def test_limits_of_the_laser_s_temperature_are_for_the_laser_s_temperature(document):
    stated = limits("WARNING", laser_temperature_upper="55", module_temperature_upper="70")
    thresholds = f"<x:thresholds>{stated}</x:thresholds>"
    laser = read(document, "", lane(0, instant("laser-temperature", 45, "x")))(thresholds)
    case = read(document, case="<temperature><instant>33</instant></temperature>")(thresholds)
    assert (laser.thresholds, case.thresholds) == ({"temperature_high_warning": 55}, {"temperature_high_warning": 70})
