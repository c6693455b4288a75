"""Every XID and SXid of NVIDIA's catalogues has the action of the catalogue; the tables name their sources."""

from pathlib import Path

import pytest

from lumctl.fleet.readings import HostSnapshot, SxidEvent, XidEvent
from lumctl.health.rulebook import rulebook, verdict
from lumctl.health.rules.cases import GpuCase
from lumctl.health.rules.host import HostCase, nvswitch
from lumctl.health.rules.xid import action_of, xids
from lumctl.health.states import State
from lumctl.inventory.model import Thresholds

NOW = 1_800_000_000.0
FOLDER = Path(__file__).parent / "catalogues"
CASES = {
    "RESET_GPU": ("reset-gpu", State.FAILED),
    "RESTART_BM": ("restart-machine", State.FAILED),
    "RESTART_VM": ("restart-virtual-machine", State.FAILED),
    "RESTART_APP": ("restart-application", State.OK),
    "IGNORE": ("ignore", State.OK),
    "CHECK_MECHANICALS": ("check-seating", State.DEGRADED),
    "CHECK_UVM": ("check-uvm", State.DEGRADED),
    "UPDATE_SWFW": ("update-software", State.DEGRADED),
    "CONTACT_SUPPORT": ("contact-support", State.DEGRADED),
    "WORKFLOW_XID_45": ("preemptive-cleanup", State.OK),
    "WORKFLOW_XID_48": ("decide", State.DEGRADED),
    "WORKFLOW_NVLINK_ERR": ("decide", State.DEGRADED),
    "WORKFLOW_NVLINK5_ERR": ("decide", State.DEGRADED),
    "XID_154": ("read-recovery-action", State.DEGRADED),
    "XID_154_EVAL": ("read-recovery-action", State.DEGRADED),
    "-": ("no-action-given", State.DEGRADED),
}


def table(name):
    lines = (FOLDER / name).read_text().splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


XIDS = [(int(number), action) for number, action in table("xids.tsv")]
SUB_CODES = [(int(row[0]), *row[1:]) for row in table("nvlink_xids.tsv")]
SXIDS = [(int(number), section, action) for number, section, action in table("sxids.tsv")]


def worst_of(*texts, number):
    """The state that lines of an XID give a GPU of which nothing else is known."""
    events = tuple(XidEvent(NOW, "0000:9b:00", number, text) for text in texts)
    found = list(xids(GpuCase("g", None, None, None, events, Thresholds(), NOW)))
    return (found[0].state, found[0]) if found else (State.OK, None)


@pytest.mark.parametrize(("number", "action"), XIDS)
def test_every_xid_has_the_action_of_the_catalogue(number, action):
    case, state = CASES[action]
    assert action_of(XidEvent(NOW, "0000:9b:00", number, "")) == case
    assert worst_of("", number=number)[0] is state


def test_no_number_has_an_action_that_the_catalogue_does_not_give():
    assert len(XIDS) == 172
    assert set(rulebook().xid_actions) == {number for number, _ in XIDS}
    assert set(rulebook().sxid_cases) == {number for number, _, _ in SXIDS}


def line(unit, intr_info, error_status, weight="Fatal", link="08"):
    return (
        f"{unit.split('/')[-1]} {weight} XC0 i0 Link {link} (0x{intr_info:08x} 0x{error_status} 0x00000000 0x00000000)"
    )


@pytest.mark.parametrize("row", SUB_CODES, ids=lambda row: "-".join((str(row[0]), row[1].split("/")[-1], row[4])))
@pytest.mark.parametrize("rest", ["0", "1"])
def test_every_sub_code_of_nvlink_5_has_the_action_of_the_catalogue(row, rest):
    number, unit, before, since, error_status, action = row
    case, state = CASES[action]
    for pattern in (before, since):
        text = line(unit, int(pattern.replace("-", rest), 2), error_status)
        assert action_of(XidEvent(NOW, "0000:9b:00", number, text)) == case
        assert action_of(XidEvent(NOW, "0000:9b:00", number, f"pid=7, name=python3, {text}")) == case
        assert worst_of(text, number=number)[0] is state


def test_how_many_sub_codes_need_a_reset():
    actions = [row[-1] for row in SUB_CODES]
    assert [actions.count(action) for action in ("RESET_GPU", "IGNORE", "XID_154_EVAL")] == [41, 45, 8]


RESET = line("NETIR_LINK_EVT", 0x004505C6, "00000000")
IGNORE = line("NETIR_BER_EVENT", 0x13, "00000001", "Nonfatal")
DEFER = line("RLW_REMAP", 0x04, "00000001", "Nonfatal")


@pytest.mark.parametrize(
    "text",
    [
        "NETIR_LINK_EVT Fatal XC0 i0 Link 08",
        "NETIR_LINK_EVT Fatal XC 1 i 2 Link 01 [0x0000000a]",
        line("RLW_REMAP", 0x04, "00000003"),
        line("NETIR_LINK_EVT", 0x03F00011, "00000000"),
        "",
    ],
)
def test_a_line_that_the_catalogue_does_not_decode_follows_its_number(text):
    assert worst_of(text, number=149)[0] is State.DEGRADED


def test_the_gravest_line_of_an_xid_counts():
    state, finding = worst_of(IGNORE, RESET, IGNORE, number=149)
    assert (state, finding.case) == (State.FAILED, "reset-gpu")
    assert finding.evidence == "NVLink error: NETIR_LINK_EVT of link 8 (XID 149)"
    assert worst_of(IGNORE, number=149) == (State.OK, None)


def test_a_sub_code_that_defers_to_xid_154_hides_no_other():
    asked = XidEvent(NOW, "0000:9b:00", 154, "GPU recovery action changed from 0x1 (Reset) to 0x0 (None)")
    both = (XidEvent(NOW, "0000:9b:00", 145, DEFER), XidEvent(NOW, "0000:9b:00", 145, "RLW_NEW Fatal"), asked)
    assert [f.about for f in xids(GpuCase("g", None, None, None, both, Thresholds(), NOW))] == ["145"]
    assert not list(xids(GpuCase("g", None, None, None, (both[0], asked), Thresholds(), NOW)))


SECTIONS = {"non-fatal": State.OK, "other": State.OK, "fatal": State.FAILED, "always-fatal": State.FAILED}
ASKED = {
    "restart-guest": State.DEGRADED,
    "check-link": State.DEGRADED,
    "cooling": State.DEGRADED,
    "reset-all": State.FAILED,
}


def of_sxid(number, *, fatal):
    event = SxidEvent(NOW - 5, "0000:86:00.0", number, "", fatal=fatal)
    seen = HostSnapshot("h", NOW, reachable=True, sxids=(event,))
    (found,) = nvswitch(HostCase("h", seen, None, (), (), NOW, NOW))
    return found.state


@pytest.mark.parametrize(("number", "section", "action"), SXIDS)
def test_every_sxid_has_the_weight_of_the_catalogue(number, section, action):
    state = ASKED.get(action, SECTIONS[section])
    assert of_sxid(number, fatal=None) is state
    assert of_sxid(number, fatal=False) is state
    # What the switch itself calls fatal is fatal.
    assert of_sxid(number, fatal=True) is State.FAILED
    assert (rulebook().sxid_cases[number] == "always-fatal") is (section == "always-fatal")


def test_an_sxid_that_nobody_knows_weighs_what_its_line_says():
    assert [of_sxid(99999, fatal=fatal) for fatal in (True, None, False)] == [
        State.FAILED,
        State.DEGRADED,
        State.OK,
    ]
    assert verdict("host.nvswitch", "always-fatal").advice != verdict("host.nvswitch", "fatal").advice
