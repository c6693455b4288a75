import pytest

from lumctl.fleet.probe_output import Gathered
from lumctl.fleet.probes import probes_for
from lumctl.fleet.readings import ALL_NVLINKS, ProbeStatus

PROBES = [probe.name for probe in probes_for(("eth2",), sudo=False)]
TOOLS = [name for name in PROBES if name not in {"net", "infiniband", "counters"}]
MAY_BE_FORBIDDEN = {"crashes", "fabric_log"}
RESOLVE = "sudo: unable to resolve host r17-h01: Name or service not known\n"


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("probe", PROBES)
def test_a_refusal_is_told_from_an_answer(take, probe, status):
    """The loop gives no exit status where lines are picked, and sudo may warn before it refuses."""
    refusal = "sudo: a password is required"
    expected = ProbeStatus.ABSENT if probe in MAY_BE_FORBIDDEN else ProbeStatus.DENIED
    assert take(probe, f"{RESOLVE}{refusal}\n", status=status)[:2] == (expected, refusal)


@pytest.mark.parametrize("probe", TOOLS)
def test_what_goes_wrong_is_told_apart(take, probe):
    assert take(probe, "sh: 1: it: not found\n", status=127)[0] is ProbeStatus.ABSENT
    assert take(probe, "sudo: it: command not found\n", status=1)[0] is ProbeStatus.ABSENT
    assert take(probe, f"{RESOLVE}it broke\n", status=1)[:2] == (ProbeStatus.FAILED, "it broke")
    assert take(probe, "garbage\x00\n", status=0)[0] is ProbeStatus.FAILED


@pytest.mark.parametrize("probe", ["net", "infiniband", "counters"])
def test_a_host_without_such_ports(take, probe):
    assert take(probe, status=2)[:2] == (ProbeStatus.ABSENT, "none on this host")
    assert take(probe, "garbage\n", status=2)[0] is ProbeStatus.FAILED


def test_grep_complains_of_one_file_and_the_rest_is_read(take, answer):
    status, _, gathered = take("net", answer("net.txt"), status=2)
    assert (status, len(gathered.interfaces)) == (ProbeStatus.OK, 3)
    status, _, gathered = take("counters", answer("counters.txt"), status=2)
    assert (status, list(gathered.counters)) == (ProbeStatus.OK, ["eth2", "mlx5_0/1"])


def test_a_line_of_sysfs_that_cannot_be_read_fails_the_probe_and_spoils_no_other(take, answer):
    text = answer("net.txt").replace("eth2/operstate:down", "eth2/operstate:d\x00wn")
    status, detail, gathered = take("net", text)
    assert status is ProbeStatus.FAILED
    assert "eth2/operstate" in detail
    assert (gathered.interfaces["eno1"].operstate, gathered.interfaces["eth2"].operstate) == ("up", None)


def test_what_was_read_before_stays_where_an_answer_fails(take, answer):
    _, _, gathered = take("net", answer("net.txt"), at=1.0)
    take("net", "sudo: a password is required", status=1, gathered=gathered, at=2.0)
    assert gathered.interfaces["eno1"].taken_at == 1.0


@pytest.mark.parametrize(
    ("probe", "file", "readings"),
    [
        ("gpu", "healthy.xml", lambda g: g.gpus),
        ("nvlink", "nvlink-5.txt", lambda g: g.nvlinks),
        ("net", "net.txt", lambda g: g.interfaces.values()),
        ("infiniband", "infiniband.txt", lambda g: g.infiniband),
        ("counters", "counters.txt", lambda g: g.counters.values()),
        ("optics:eth2", "sfp.txt", lambda g: g.optics.values()),
    ],
)
def test_the_same_answer_again_is_true_of_a_later_time(take, answer, probe, file, readings):
    status, _, gathered = take(probe, answer(file), at=1.0)
    before = list(readings(gathered))
    (known,) = (p for p in probes_for(("eth2",), sudo=False) if p.name == probe)
    known.again(7.0, gathered)
    assert status is ProbeStatus.OK
    assert {reading.taken_at for reading in before} == {1.0}
    assert {reading.taken_at for reading in readings(gathered)} == {7.0}


def test_gpus(take, answer):
    status, _, gathered = take("gpu", answer("h100.xml"))
    assert (status, len(gathered.gpus), gathered.lost_gpus) == (ProbeStatus.OK, 2, ("0000:c3:00.0",))
    for cut, whole in ((2000, 0), (-40, 1)):
        status, detail, gathered = take("gpu", answer("h100.xml")[:cut])
        assert (status, len(gathered.gpus)) == (ProbeStatus.FAILED, whole)
        assert "truncated" in detail


def test_a_gpu_without_an_address_cannot_be_judged(take, answer):
    text = answer("healthy.xml").replace("00000000:4C:00.0", "00000000:4C:0")
    status, detail, gathered = take("gpu", text)
    assert (status, len(gathered.gpus)) == (ProbeStatus.FAILED, 1)
    assert "address" in detail


def test_a_driver_that_names_its_lost_gpu_has_answered(take):
    complaint = "Unable to determine the device handle for GPU0000:9B:00.0: GPU is lost.\n"
    status, _, gathered = take("gpu", complaint, status=15)
    assert (status, gathered.gpus, gathered.lost_gpus) == (ProbeStatus.OK, (), ("0000:9b:00.0",))


@pytest.mark.parametrize(
    ("reason", "status"),
    [("Insufficient Permissions", ProbeStatus.DENIED), ("Insufficient External Power", ProbeStatus.FAILED)],
)
def test_a_list_that_withholds_a_gpu_proves_no_loss(take, answer, reason, status):
    complaint = f"Unable to determine the device handle for GPU 0000:9B:00.0: {reason}"
    assert take("gpu", f"{complaint}\n{answer('k80.xml')}")[:2] == (status, complaint)


def test_no_gpu_at_all_is_an_answer_and_a_dead_driver_is_none(take):
    assert take("gpu", "No devices were found\n", status=6)[0] is ProbeStatus.OK
    dead = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    assert take("gpu", dead, status=9)[:2] == (ProbeStatus.FAILED, dead.strip())
    assert take("nvlink", dead, status=9)[:2] == (ProbeStatus.FAILED, dead.strip())


@pytest.mark.parametrize("tool", ["Cannot get module EEPROM information", "netlink error"])
def test_an_empty_cage_is_an_answer_and_a_module_that_cannot_be_read_is_none(take, answer, tool):
    _, _, gathered = take("optics:eth2", answer("sfp.txt"))
    status, _, _ = take("optics:eth2", f"{tool}: Input/output error\n", status=1, gathered=gathered)
    assert (status, list(gathered.optics)) == (ProbeStatus.FAILED, ["eth2"])
    status, _, _ = take("optics:eth2", f"{tool}: Operation not supported\n", status=95, gathered=gathered)
    assert (status, gathered.optics) == (ProbeStatus.OK, {})


def test_ethtool_s_other_complaints(take):
    denied = "netlink error: Operation not permitted\n"
    assert take("optics:eth2", denied, status=1)[0] is ProbeStatus.DENIED
    assert take("optics:eth2", "netlink error: No such device\n", status=1)[0] is ProbeStatus.FAILED


def test_lldp_in_another_format_or_cut_short_is_no_answer(take, answer):
    text = answer("lldp.json")
    assert take("lldp", "LLDP neighbors:\n")[0] is ProbeStatus.FAILED
    assert take("lldp", text[: len(text) // 2])[0] is ProbeStatus.FAILED
    assert take("lldp", '{"lxdp": {}}')[0] is ProbeStatus.FAILED
    assert take("lldp", "{}")[0] is ProbeStatus.OK
    warned = f"2026-11-21T14:00:00 [WARN/lldpctl] unable to drop privileges\n{text}"
    assert len(take("lldp", warned)[2].neighbours["eth2"]) == 2


class TestKernel:
    def test_the_whole_log_and_what_is_added(self, take, answer):
        log = "\n".join(answer("kernel.log").splitlines()[:-1])
        status, _, gathered = take("kernel", log, gathered=Gathered(booted_at=1000.0))
        assert (status, [event.xid for event in gathered.xids]) == (ProbeStatus.OK, [79, 119, 13, 31, 48])
        more = "\n[   99.000000] NVRM: Xid (PCI:0000:05:00): 94, pid=7"
        status, _, _ = take("kernel", more, appended=True, gathered=gathered)
        assert (status, gathered.xids[-1].xid, gathered.xids[-1].at) == (ProbeStatus.OK, 94, 1099.0)
        assert len(gathered.xids) == 6

    def test_nothing_is_counted_twice(self, take):
        line = "[   99.000000] NVRM: Xid (PCI:0000:05:00): 94, pid=7"
        _, _, gathered = take("kernel", line)
        take("kernel", line, appended=True, gathered=gathered)
        assert len(gathered.xids) == 1
        # The same GPU and number at another time is another event.
        take("kernel", line.replace("99.0", "99.5"), appended=True, gathered=gathered)
        assert len(gathered.xids) == 2

    def test_a_reconnect_tells_of_the_same_events_though_the_boot_is_timed_anew(self, take):
        line = "[   99.000000] NVRM: Xid (PCI:0000:05:00): 94, pid=7"
        first = take("kernel", line, gathered=Gathered(booted_at=1000.0))[2].xids[0]
        second = take("kernel", line, gathered=Gathered(booted_at=1000.4))[2].xids[0]
        assert first.at != second.at
        assert first.identity == second.identity

    def test_a_last_line_that_was_cut_is_replaced_by_the_whole_one(self, take):
        _, _, gathered = take("kernel", "[   99.000000] NVRM: Xid (PCI:0000:05:00): 9")
        take("kernel", "[   99.000000] NVRM: Xid (PCI:0000:05:00): 94, pid=7", gathered=gathered)
        assert [event.xid for event in gathered.xids] == [94]

    def test_a_fall_off_the_bus_is_told_once_though_its_xid_comes_later(self, take):
        fallen = "[    1.500000] NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus."
        _, _, gathered = take("kernel", fallen)
        assert [event.xid for event in gathered.xids] == [79]
        take("kernel", "[    1.600000] NVRM: Xid (PCI:0000:9b:00): 79, pid=1", appended=True, gathered=gathered)
        assert [event.stamp for event in gathered.xids] == ["1.600000"]

    def test_an_empty_log_is_well_and_a_refusal_forgets_nothing(self, take):
        assert take("kernel", "")[0] is ProbeStatus.OK
        assert take("kernel", RESOLVE)[0] is ProbeStatus.OK
        _, _, gathered = take("kernel", "[    1.0] NVRM: Xid (PCI:0000:9b:00): 79")
        refusal = "dmesg: read kernel buffer failed: Operation not permitted"
        assert take("kernel", refusal, gathered=gathered)[:2] == (ProbeStatus.DENIED, refusal)
        assert take("kernel", "sh: 1: dmesg: not found", gathered=gathered)[0] is ProbeStatus.ABSENT
        assert len(gathered.xids) == 1

    def test_an_xid_that_cannot_be_read_is_not_passed_over(self, take):
        status, detail, _ = take("kernel", "[    1.0] NVRM: Xid (PCI:00?0:9b:00): 79, GPU has\n")
        assert status is ProbeStatus.FAILED
        assert "00?0" in detail

    def test_a_flood_is_thinned_out_and_rare_events_stay(self, take):
        rare = "[    0.500000] NVRM: Xid (PCI:0000:9b:00): 79, gone"
        flood = [f"[{n:5}.000000] NVRM: Xid (PCI:0000:05:00): 31, again" for n in range(1, 5000)]
        _, _, gathered = take("kernel", "\n".join([rare, *flood]))
        assert [event.xid for event in gathered.xids] == [79] + [31] * 32
        assert gathered.xids[-1].stamp == "4999.000000"


class TestNvlink:
    def test_counters_join_the_links(self, take, answer):
        _, _, gathered = take("nvlink", answer("nvlink-5.txt"), at=1.0)
        status, _, _ = take("nvlink:errors", answer("nvlink-errors-5.txt"), gathered=gathered, at=2.0)
        first, second, third = gathered.nvlinks
        assert status is ProbeStatus.OK
        assert (first.active, first.speed_gb_s, first.taken_at, first.errors_at) == (True, 53.125, 1.0, 2.0)
        assert (first.effective_ber, second.effective_ber) == (1.5e-254, 2e-11)
        assert (second.replay_errors, second.recovery_errors, second.errors["fec errors - 1"]) == (None, 1, 5)
        assert (third.active, third.speed_gb_s, third.errors_at) == (False, None, None)

    def test_states_that_come_later_keep_the_counters(self, take, answer):
        _, _, gathered = take("nvlink", answer("nvlink-5.txt"), at=1.0)
        take("nvlink:errors", answer("nvlink-errors-5.txt"), gathered=gathered, at=2.0)
        take("nvlink", answer("nvlink-5.txt").replace("Link 1: 53.125 GB/s", "Link 1: <inactive>"), gathered=gathered)
        assert (gathered.nvlinks[1].active, gathered.nvlinks[1].effective_ber) == (False, 2e-11)

    @pytest.mark.parametrize(
        "said",
        [
            "",
            "Option -e is not recognized. Please run 'nvidia-smi nvlink -h'\n",
            "NVML: Unable to retrieve NVLink information as all links are inActive\n",
        ],
    )
    def test_a_host_without_it(self, take, said):
        assert take("nvlink:errors", said)[0] is ProbeStatus.ABSENT

    @pytest.mark.parametrize("word", ["NVLink", "Nvlink"])
    def test_a_gpu_of_which_no_link_is_active(self, take, word):
        none = f"NVML: Unable to retrieve {word} information as all links are inActive\n"
        said = f"GPU 0: A (UUID: GPU-1)\n\t Link 0: 25 GB/s\nGPU 1: A (UUID: GPU-2)\n{none}"
        status, _, gathered = take("nvlink", said)
        assert status is ProbeStatus.OK
        assert [(n.index, n.link, n.active) for n in gathered.nvlinks] == [(0, 0, True), (1, ALL_NVLINKS, False)]
        # The counters' answer says the same, and counts nothing for it.
        assert take("nvlink:errors", said.replace("25 GB/s", "CRC Errors: 1"), gathered=gathered)[0] is ProbeStatus.OK
        assert gathered.nvlinks[1].errors_at is None

    def test_rates_are_what_was_counted_between_two_answers(self, take, answer):
        def moved(tx, rx, others=1):
            links = f"\t Link 0: Data Tx: {tx} KiB\n\t Link 0: Data Rx: {rx} KiB\n"
            also = f"\t Link 1: Data Tx: {others} KiB\n\t Link 1: Data Rx: {others} KiB\n"
            return f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {uuid})\n{links}{also}"

        _, _, gathered = take("gpu", answer("h100.xml"), at=1.0)
        uuid = gathered.gpus[0].uuid
        assert take("nvlink:traffic", moved(1000, 5000), gathered=gathered, at=10.0)[0] is ProbeStatus.OK
        assert gathered.gpus[0].nvlink_tx_kb_s is None  # one count is no rate
        take("nvlink:traffic", moved(3000, 6000, others=1001), gathered=gathered, at=40.0)
        gpu = gathered.gpus[0]
        assert (gpu.nvlink_tx_kb_s, gpu.nvlink_rx_kb_s) == pytest.approx((3000 * 1.024 / 30, 2000 * 1.024 / 30))
        assert (gpu.nvlink_rates_at, gpu.nvlink_rates_over_s) == (40.0, 30.0)
        take("gpu", answer("h100.xml"), gathered=gathered, at=99.0)
        assert gathered.gpus[0].nvlink_rates_at == 40.0
        take("gpu", answer("h100.xml"), gathered=gathered, at=101.0)
        assert gathered.gpus[0].nvlink_tx_kb_s is None  # too old to be true of now
        take("nvlink:traffic", moved(2000, 7000, others=1001), gathered=gathered, at=110.0)
        assert gathered.gpus[0].nvlink_rx_kb_s is None  # a count that fell began again

    def test_links_without_such_counts_have_no_rate(self, take, answer):
        _, _, gathered = take("gpu", answer("h100.xml"), at=1.0)
        link = "\t Link 0: Data Tx: N/A\n\t Link 0: Data Rx: N/A\n"
        for at in (10.0, 40.0):
            said = f"GPU 0: NVIDIA H100 (UUID: {gathered.gpus[0].uuid})\n{link}"
            assert take("nvlink:traffic", said, gathered=gathered, at=at)[0] is ProbeStatus.OK
        assert gathered.gpus[0].nvlink_tx_kb_s is None

    def test_a_link_that_cannot_be_read(self, take, answer):
        for name, file in (("nvlink", "nvlink-5.txt"), ("nvlink:errors", "nvlink-errors-5.txt")):
            text = answer(file).replace("53.125", "5#.125").replace("Errors: 0", "Errors: #")
            assert take(name, text)[0] is ProbeStatus.FAILED
