import pytest

from lumctl.devices.protocols import CommandResult
from lumctl.fleet.probes import DEADLINES_S, Gathered, probes_for
from lumctl.fleet.readings import ProbeStatus

PROBES = {probe.name: probe for probe in probes_for(("eth2",), sudo=False, deadlines_s=DEADLINES_S)}


def take(probe, exit_status=0, stdout="", stderr=""):
    gathered = Gathered()
    verdict = PROBES[probe].take(CommandResult(exit_status, stdout, stderr), 9.0, gathered)
    return *verdict, gathered


def test_the_commands_are_those_that_were_agreed():
    assert [probe.command for probe in PROBES.values()] == [
        "nvidia-smi -q -x",
        "dmesg --time-format iso",
        "grep -sH . /sys/class/net/*/operstate /sys/class/net/*/carrier_changes /sys/class/net/*/speed",
        (
            "grep -sH . /sys/class/infiniband/*/ports/*/state /sys/class/infiniband/*/ports/*/phys_state"
            " /sys/class/infiniband/*/ports/*/rate /sys/class/infiniband/*/ports/*/counters/*"
        ),
        "lldpctl -f json",
        "ethtool -m eth2",
    ]


def test_with_sudo_and_a_name_that_a_shell_would_misread():
    (*_, last) = probes_for(("eth2; rm -rf /",), sudo=True, deadlines_s=DEADLINES_S)
    assert last.command == "sudo -n ethtool -m 'eth2; rm -rf /'"


@pytest.mark.parametrize("probe", PROBES)
def test_what_goes_wrong_is_told_apart(probe):
    assert take(probe, 1, stderr="sudo: a password is required\n")[:2] == (
        ProbeStatus.DENIED,
        "sudo: a password is required",
    )
    if not PROBES[probe].command.startswith("grep"):
        assert take(probe, 127, stderr="sh: 1: it: not found\n")[0] is ProbeStatus.ABSENT
        assert take(probe, 1, stderr="it broke\n")[:2] == (ProbeStatus.FAILED, "it broke")


@pytest.mark.parametrize("probe", ["net", "infiniband"])
def test_a_host_without_such_ports(probe):
    assert take(probe, 2)[:2] == (ProbeStatus.ABSENT, "none on this host")


def test_grep_complains_of_one_file_and_the_rest_is_read(answer):
    status, _, gathered = take("net", 2, answer("net.txt"))
    assert (status, len(gathered.interfaces)) == (ProbeStatus.OK, 3)


def test_gpus(answer):
    status, _, gathered = take("gpu", 0, answer("h100.xml"))
    assert (status, len(gathered.gpus), gathered.lost_gpus) == (ProbeStatus.OK, 2, ("0000:c3:00.0",))
    for cut, whole in ((2000, 0), (-40, 1)):
        status, detail, gathered = take("gpu", 0, answer("h100.xml")[:cut])
        assert (status, len(gathered.gpus)) == (ProbeStatus.FAILED, whole)
        assert "cut short" in detail


def test_a_driver_that_names_its_lost_gpu_has_answered():
    complaint = "Unable to determine the device handle for GPU0000:9B:00.0: GPU is lost.\n"
    status, _, gathered = take("gpu", 15, stdout=complaint)
    assert (status, gathered.gpus, gathered.lost_gpus) == (ProbeStatus.OK, (), ("0000:9b:00.0",))


@pytest.mark.parametrize(
    ("reason", "status"),
    [("Insufficient Permissions", ProbeStatus.DENIED), ("Insufficient External Power", ProbeStatus.FAILED)],
)
def test_a_list_that_withholds_a_gpu_proves_no_loss(answer, reason, status):
    complaint = f"Unable to determine the device handle for GPU 0000:9B:00.0: {reason}"
    assert take("gpu", 0, f"{complaint}\n{answer('k80.xml')}")[:2] == (status, complaint)


def test_no_gpu_at_all_is_an_answer_and_a_dead_driver_is_none():
    assert take("gpu", 6, stdout="No devices were found\n")[0] is ProbeStatus.OK
    dead = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    assert take("gpu", 9, stdout=dead)[:2] == (ProbeStatus.FAILED, dead.strip())


@pytest.mark.parametrize("tool", ["Cannot get module EEPROM information", "netlink error"])
def test_an_empty_cage_is_an_answer_and_a_module_that_cannot_be_read_is_none(tool):
    status, _, gathered = take("optics:eth2", 95, stderr=f"{tool}: Operation not supported\n")
    assert (status, gathered.optics) == (ProbeStatus.OK, {})
    assert take("optics:eth2", 1, stderr=f"{tool}: Input/output error\n")[0] is ProbeStatus.FAILED


def test_ethtool_s_other_complaints():
    assert take("optics:eth2", 1, stderr="netlink error: Operation not permitted\n")[0] is ProbeStatus.DENIED
    assert take("optics:eth2", 1, stderr="netlink error: No such device\n")[0] is ProbeStatus.FAILED


def test_lldp_in_another_format_is_no_answer(answer):
    assert take("lldp", 0, "LLDP neighbors:\n")[0] is ProbeStatus.FAILED
    assert take("lldp", 0, "{}")[0] is ProbeStatus.OK
    assert len(take("lldp", 0, answer("lldp.json"))[2].neighbours["eth2"]) == 2


def test_the_kernel_log(answer):
    assert [event.xid for event in take("kernel", 0, answer("kernel.log"))[2].xids] == [79, 119, 13, 31, 48]
