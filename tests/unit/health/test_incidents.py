"""Findings with one cause are one incident, and it is named after the cause."""

from dataclasses import replace

from lumctl.fleet.readings import ProbeStatus
from lumctl.health.acknowledgements import MaintenanceWindow
from lumctl.health.remedy import remedies
from lumctl.health.states import State
from lumctl.inventory.model import Role

DARK = float("-inf")


def lose(watched, *hosts):
    for host in hosts:
        watched.rack.host(host, reachable=False, error="no route to host", probes={})


def darken(watched, transponder, *, by=None):
    """No light arrives, and if somebody is named, because that transmitter sends none."""
    watched.rack.module(transponder, rx_power_dbm=DARK)
    watched.rack.interface(transponder, operstate="down")
    if by is not None:
        watched.rack.module(by, tx_power_dbm=DARK, transmitting=False)


def ids(watched):
    return [incident.id for incident in watched.report.incidents]


def test_a_rack_in_which_all_is_well_has_none(watched):
    assert watched.report.incidents == ()


def test_a_lost_host_takes_everything_behind_it(watched):
    lose(watched, "h03")
    (incident,) = watched.look().incidents
    assert (incident.id, incident.cause, incident.rule, incident.state) == (
        "host:h03",
        "h03",
        "host.unreachable",
        State.FAILED,
    )
    assert len(incident.members) == 1 + 4 + 8 + 8
    assert incident.summary == "h03: no route to host (1 host, 4 accelerators, 8 links, 8 circuits)"
    assert watched.report.hosts["h03"].findings[0].incident == "host:h03"


def test_an_incident_keeps_its_name_and_its_beginning(watched):
    lose(watched, "h03")
    first = watched.look().incidents[0]
    watched.restart()
    for _ in range(3):
        again = watched.look().incidents[0]
        assert (again.id, again.since) == (first.id, first.since)


def test_what_is_too_hot_is_cooled_before_a_spare_takes_its_place(watched):
    watched.rack.gpu("h03-gpu2", temperature_c=93.0)
    watched.look()
    (remedy,) = remedies(watched.report, watched.rack.inventory, watched.rack.assignment)
    assert (remedy.cause, remedy.replace, remedy.hand_first) == ("h03-gpu2", ("h03-gpu2",), True)
    assert remedy.words.startswith("check the cooling of this host")
    assert remedy.words.endswith("; if that does not help: lumctl swap plan --failed h03-gpu2")
    # So it is where several of one host are hot, which is one incident of the host.
    for number in range(4):
        watched.rack.gpu(f"h03-gpu{number}", temperature_c=93.0)
    watched.look()
    (remedy,) = remedies(watched.report, watched.rack.inventory, watched.rack.assignment)
    assert (remedy.cause, remedy.hand_first) == ("h03", True)
    assert remedy.words.startswith("check the cooling")


def test_what_affects_a_job_is_repaired_before_what_only_leaves_no_spare(watched):
    for number in range(4):
        watched.rack.xid(f"h16-gpu{number}", 95)
    watched.rack.gpu("h03-gpu2", remap_failed=True)
    (incident,) = watched.look().incidents
    assert (incident.cause, incident.state) == ("h16", State.FAILED)
    found = remedies(watched.report, watched.rack.inventory, watched.rack.assignment)
    assert [remedy.cause for remedy in found] == ["h03-gpu2", "h16"]


def test_one_finding_of_one_component_is_no_incident(watched):
    watched.rack.gpu("h03-gpu2", remap_failed=True)
    assert watched.look().incidents == ()
    assert watched.report.findings()[0].incident is None


def test_the_rack_comes_before_its_hosts(watched):
    lose(watched, *(f"h{n:02}" for n in range(1, 10)))
    assert watched.look().incidents[0].id == "rack:rack64"
    assert ids(watched) == ["rack:rack64"]
    assert len(watched.report.incidents[0].members) >= 9 * 13


def test_half_of_a_rack_is_no_fault_of_the_rack(watched):
    lose(watched, *(f"h{n:02}" for n in range(1, 9)))
    watched.look()
    assert ids(watched) == [f"host:h{n:02}" for n in range(1, 9)]


def test_hosts_under_work_do_not_speak_for_their_rack(watched):
    down = [f"h{n:02}" for n in range(1, 10)]
    lose(watched, *down)
    watched.said["windows"] = [
        MaintenanceWindow(host, host, "kim", "", watched.now, watched.now + 900) for host in down[2:]
    ]
    watched.look()
    assert ids(watched) == ["host:h01", "host:h02"]


def test_a_rack_that_grows_hot_is_one_incident(watched):
    for name in watched.rack.inventory.accelerators:
        watched.rack.gpu(name, temperature_c=95.0)
    (incident,) = watched.look().incidents
    assert (incident.id, incident.rule) == ("rack:rack64", "gpu.temperature")
    assert {f.incident for f in watched.report.findings()} == {"rack:rack64"}


def test_all_gpus_of_a_host_alike_are_the_hosts(watched):
    for number in range(4):
        watched.rack.gpu(f"h03-gpu{number}", temperature_c=95.0)
    watched.look()
    assert ids(watched) == ["host:h03"]


def test_three_of_four_gpus_alike_are_three_gpus(watched):
    for number in range(3):
        watched.rack.gpu(f"h03-gpu{number}", temperature_c=95.0)
    assert watched.look().incidents == ()


def test_a_hung_driver_takes_the_gpus_that_grow_old_behind_it(watched):
    watched.rack.probe("h03", "gpu", ProbeStatus.TIMED_OUT)
    watched.rack.host("h03", gpus=())
    (incident,) = watched.look().incidents
    assert incident.rule == "host.driver-hung"
    assert set(incident.members) == {"h03", *(f"h03-gpu{n}" for n in range(4))}


def test_a_circuit_that_is_dark_is_the_silent_transmitters(watched):
    darken(watched, "h03-gpu2-a", by="h02-gpu2-b")
    (incident,) = watched.look().incidents
    assert (incident.id, incident.cause) == ("link:h02-gpu2-b", "h02-gpu2-b")
    (circuit,) = (c.id for c in watched.report.circuits.values() if c.state is State.FAILED)
    assert set(incident.members) == {circuit, "h03-gpu2-a", "h02-gpu2-b"}
    assert {f.incident for f in watched.report.findings()} == {"link:h02-gpu2-b"}


def test_light_that_is_lost_between_well_ends_is_the_circuits_own(watched):
    darken(watched, "h03-gpu2-a")
    darken(watched, "h02-gpu2-b")
    (incident,) = watched.look().incidents
    assert incident.id.startswith("circuit:")
    assert set(incident.suspects) == {"h02-gpu2-b", "h03-gpu2-a"}


def test_one_dark_direction_of_a_duplex_circuit_is_its_receiver_s(watched):
    # Both directions share the fibres and the way through the mesh, and the far module measures what it sends.
    darken(watched, "h03-gpu2-a")
    (incident,) = watched.look().incidents
    assert (incident.id, incident.suspects) == ("link:h03-gpu2-a", ())


def test_light_that_one_accelerator_loses_on_all_its_lanes_is_its_own(watched):
    for lane in ("h03-gpu2-a", "h02-gpu2-b", "h03-gpu2-b", "h04-gpu2-a"):
        darken(watched, lane)
    (incident,) = watched.look().incidents
    assert incident.id == "accelerator:h03-gpu2"


def test_light_that_many_circuits_of_a_mesh_lose_is_the_meshs(watched):
    for lane in ("h03-gpu2-a", "h02-gpu2-b", "h06-gpu2-a", "h05-gpu2-b"):
        darken(watched, lane)
    (incident,) = watched.look().incidents
    assert (incident.id, incident.cause) == ("device:rail2", "rail2")


def test_a_dead_mesh_is_the_cause_of_its_circuits(watched):
    watched.rack.device("rail2", problem="no answer")
    darken(watched, "h03-gpu2-a")
    (incident,) = watched.look().incidents
    assert (incident.id, incident.rule) == ("device:rail2", "device.unreachable")


def test_light_that_a_lost_host_took_with_it_is_the_hosts(watched):
    lose(watched, "h02")
    for number in range(4):
        darken(watched, f"h03-gpu{number}-a")
    (incident,) = watched.look().incidents
    assert incident.id == "host:h02"
    assert {"h03-gpu0-a", "h03-gpu3-a"} <= set(incident.members)


def test_a_silent_transmitter_is_the_cause_while_the_controller_of_the_mesh_is_down(watched):
    # A mesh continues carrying light without its controller.
    watched.rack.device("rail2", problem="no answer")
    darken(watched, "h03-gpu2-a", by="h02-gpu2-b")
    (incident,) = watched.look().incidents
    assert incident.id == "link:h02-gpu2-b"


def test_what_a_link_has_besides_does_not_speak_for_the_light_it_lost(watched):
    watched.carrier("h03-gpu2-b", 1)
    watched.look()
    watched.carrier("h03-gpu2-b", 5)
    darken(watched, "h04-gpu2-a", by="h03-gpu2-b")
    (incident,) = watched.look().incidents
    assert (incident.cause, incident.state) == ("h03-gpu2-b", State.FAILED)
    assert incident.rule == "link.tx-power"
    assert "sends no light" in incident.summary


def test_circuits_that_a_slow_host_does_not_tell_of_are_part_of_its_incident(watched):
    outcomes = watched.rack.hosts["h03"].probes
    late = {name: replace(outcome, status=ProbeStatus.TIMED_OUT) for name, outcome in outcomes.items()}
    watched.rack.host("h03", probes=late, gpus=(), interfaces={}, optics={}, neighbours={})
    (incident,) = watched.look().incidents
    assert (incident.cause, incident.rule) == ("h03", "host.too-slow")
    unknown = {name for name, circuit in watched.report.circuits.items() if circuit.state is State.UNKNOWN}
    assert unknown
    assert unknown <= set(incident.members)


def test_a_mesh_that_was_not_asked_is_blamed_for_nothing(watched):
    watched.rack.devices.clear()
    darken(watched, "h04-gpu2-a", by="h03-gpu2-b")
    watched.look()
    assert ids(watched) == ["link:h03-gpu2-b"]


LOST, LOST_LANES = "h03-gpu2", ("h03-gpu2-a", "h03-gpu2-b")
FAR_ENDS = {"h03-gpu2-a": "h02-gpu2-b", "h03-gpu2-b": "h04-gpu2-a"}


def lose_gpu(watched, *, dark=LOST_LANES):
    """A GPU that fell off the bus, whose transmitters went out with it."""
    watched.rack.lose_gpu(LOST)
    for lane in dark:
        darken(watched, FAR_ENDS[lane], by=lane)


def circuits_at(watched, lane):
    circuits = watched.report.circuits.values()
    return {c.id for c in circuits if lane in {end.transponder for end in c.ends}}


def test_a_lost_gpu_takes_the_circuits_and_the_links_of_its_lanes(watched):
    lose_gpu(watched)
    (incident,) = watched.look().incidents
    assert (incident.id, incident.rule, incident.state) == (f"accelerator:{LOST}", "gpu.lost", State.FAILED)
    circuits = {c for lane in LOST_LANES for c in circuits_at(watched, lane)}
    assert set(incident.members) == {LOST, *circuits, *FAR_ENDS, *FAR_ENDS.values()}
    assert incident.summary.startswith(f"{LOST}: nvidia-smi does not list it")
    assert {f.incident for f in watched.report.findings()} == {incident.id}
    (remedy,) = remedies(watched.report, watched.rack.inventory, watched.rack.assignment)
    assert (remedy.cause, remedy.replace) == (LOST, (LOST,))


def test_without_a_spare_its_remedy_says_so_first(watched):
    lose_gpu(watched)
    watched.look()
    inventory = watched.rack.inventory
    spares = tuple(each.id for each in inventory.accelerators.values() if each.role is Role.SPARE)
    (remedy,) = remedies(watched.report, inventory, {**watched.rack.assignment, "other": spares})
    assert remedy.replace == ()
    assert remedy.by_hand.startswith("no spare that fits is free; power-cycle the host")


def test_a_gpu_that_fell_off_the_bus_does_so_by_its_xid_alone(watched):
    lose_gpu(watched)
    watched.rack.host("h03", probes={**watched.rack.hosts["h03"].probes, "gpu": replace(
        watched.rack.hosts["h03"].probes["kernel"], status=ProbeStatus.FAILED)})  # fmt: skip
    watched.rack.xid(LOST, 79)
    watched.look()
    assert f"accelerator:{LOST}" in ids(watched)
    assert not {"link:h03-gpu2-a", "link:h03-gpu2-b", "device:rail2"} & set(ids(watched))


def test_a_lost_gpu_and_a_dead_mesh(watched):
    watched.rack.device("rail2", problem="no answer")
    lose_gpu(watched)
    watched.look()
    (incident,) = (i for i in watched.report.incidents if i.cause == LOST)
    assert {c for lane in LOST_LANES for c in circuits_at(watched, lane)} <= set(incident.members)


def test_a_circuit_whose_other_end_has_a_fault_of_its_own_keeps_that(watched):
    far = FAR_ENDS["h03-gpu2-a"]
    lose_gpu(watched)
    watched.rack.module(far, tx_power_dbm=DARK, transmitting=False)
    watched.look()
    by_id = {incident.id: incident for incident in watched.report.incidents}
    assert by_id.keys() == {f"accelerator:{LOST}", f"link:{far}"}
    (circuit,) = circuits_at(watched, "h03-gpu2-a") & circuits_at(watched, far)
    assert circuit in by_id[f"link:{far}"].members
    assert circuits_at(watched, "h03-gpu2-b") <= set(by_id[f"accelerator:{LOST}"].members)


def test_a_lost_host_leaves_the_faults_of_others_to_them(watched):
    lose(watched, "h03")
    far = FAR_ENDS["h03-gpu2-a"]
    for lane in FAR_ENDS.values():
        watched.rack.module(lane, rx_power_dbm=DARK)
    watched.rack.module(far, tx_power_dbm=DARK, transmitting=False)
    watched.look()
    assert set(ids(watched)) == {"host:h03", f"link:{far}"}
    assert circuits_at(watched, far) & circuits_at(watched, "h03-gpu2-a") <= set(
        next(i for i in watched.report.incidents if i.cause == far).members
    )


def test_light_that_goes_astray_is_no_fault_of_a_lost_gpu(watched):
    watched.rack.lose_gpu(LOST)
    stranger = watched.rack.hosts["h06"].neighbours
    lane = watched.rack.inventory.transponders[FAR_ENDS["h03-gpu2-a"]]
    wrong = next(iter(stranger.values()))[0]
    watched.rack.hears(lane.id, wrong)
    watched.look()
    assert [i for i in ids(watched) if i == f"accelerator:{LOST}"] == []


def test_a_lost_gpu_without_circuits_takes_its_links(watched):
    spare = next(a.id for a in watched.rack.inventory.accelerators.values() if a.role == "spare")
    lanes = watched.rack.inventory.transponders_of(spare)
    watched.rack.lose_gpu(spare)
    for lane in lanes:
        host = watched.rack.hosts[lane.host]
        interfaces = {name: reading for name, reading in host.interfaces.items() if name != lane.interface}
        watched.rack.host(lane.host, interfaces=interfaces)
    (incident,) = watched.look().incidents
    assert (incident.id, incident.rule) == (f"accelerator:{spare}", "gpu.lost")
    assert set(incident.members) == {spare, *(lane.id for lane in lanes)}


def test_a_gpu_whose_lanes_stay_lit_has_no_circuits_in_its_incident(watched):
    watched.rack.lose_gpu(LOST)
    assert watched.look().incidents == ()
    assert all(circuit.state is State.OK for circuit in watched.report.circuits.values())
