"""The headline and the strip, as text: what happened, what it means, which key; and what is left."""

from dataclasses import replace

import pytest
from looks import DARK, Looks
from rack_states import dark_transmitter, dead_host, lost_gpu
from rich.console import Console
from rich.text import Text

from lumctl.cli.output import ASCII_GLYPHS, GLYPHS
from lumctl.daemon.notifications.message import cases_of
from lumctl.fleet.readings import GpuProcess
from lumctl.health.states import Finding, Incident, State
from lumctl.inventory.load import example, load_inventory
from lumctl.jobs import without_hook
from lumctl.jobs.stopped_jobs import FORGOTTEN_S, ResumptionWatch
from lumctl.printable import number_ranges
from lumctl.spares.forecast import PoolForecast
from lumctl.store import QueuedDemand
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.incidents import incident_rows
from lumctl.tui.sources import Sources
from lumctl.tui.views.headline import headline, news_of, sentence
from lumctl.tui.views.incidents import head_text
from lumctl.tui.views.records import DaemonWatch, RecordedLook, Records
from lumctl.tui.views.runs import run_text, run_view
from lumctl.tui.views.spares import fitting, forecast_lines, groups_of, spare_lines, users_of, waiting_lines
from lumctl.tui.views.strip import strip_lines
from lumctl.tui.views.swap_choice import (
    choice_of,
    swaps_of_component,
    swaps_of_headline,
    swaps_of_incident,
)

MARKS = Marks(GLYPHS)
LOST = "r1-h2-g1"
START = 1_795_000_000.0


@pytest.fixture(scope="module")
def rack64():
    return Looks(load_inventory(example("rack64")), target="sim")


def words(seen, **changed):
    look = RecordedLook(seen, **changed)
    return headline(look, news_of(look), MARKS).plain


def with_findings(seen, *findings, state=State.FAILED):
    """The same look where these accelerators have a finding of their own."""
    report = seen.report
    accelerators = dict(report.accelerators)
    for finding in findings:
        old = accelerators[finding.component]
        accelerators[finding.component] = replace(old, state=state, findings=(finding,))
    return replace(seen, report=replace(report, accelerators=accelerators))


def finding(component, rule, evidence, *, state=State.FAILED, advice="look at it", **more):
    return Finding(component, rule, state, evidence, advice, START - 60, **more)


def test_a_lost_accelerator_is_told_with_its_rank_and_the_one_spare_that_fits(rack64):
    seen = rack64.look(START, failed=["h03-gpu2"])
    first, *circuits = news_of(RecordedLook(seen))
    assert first.words == "h03-gpu2 fell off the bus; train-a rank 18 is down; p: swap in h16-gpu2"
    assert words(seen) == f"✖ {first.words}  5: 2 more"
    assert [news.words.partition(";")[0] for news in circuits] == ["train-a/17-18 is dark", "train-a/18-19 is dark"]


def test_of_several_spares_the_number_is_told_and_without_one_that_none_fits(kit):
    seen = kit.observation()
    assert words(seen).startswith(f"✖ {LOST} fell off the bus; llm rank 5 is down; p: swap in one of 4 spares")
    spares = {f"r1-h4-g{n}": State.FAILED for n in range(4)}
    without = kit.with_states(seen, spares)
    assert "llm rank 5 is down; " in words(without)
    assert "p:" not in words(without)
    assert swaps_of_headline(RecordedLook(without)) == ()


def test_several_causes_are_counted_and_the_worst_comes_first(rack64):
    hot = finding("h01-gpu0", "gpu.temperature", "93 C", state=State.DEGRADED)
    seen = with_findings(rack64.look(START, failed=["h03-gpu2"]), hot, state=State.DEGRADED)
    assert words(seen).startswith("✖ h03-gpu2 fell off")
    assert words(seen).endswith("5: 3 more")
    states = [news.state for news in news_of(RecordedLook(seen))]
    assert states == [State.FAILED] * 3 + [State.DEGRADED]


def test_where_nothing_is_wrong_one_quiet_line_says_so(kit):
    seen = kit.observation(failed=None)
    assert words(seen) == "● nothing is wrong: 16 accelerators, 12 circuits, 4 hosts"
    assert words(kit.swapped_out(seen, LOST)) == (
        "● repair r1-h2-g1; then return 1 rank of llm (S: how); no fault is found: 15 of 16 accelerators, 12 circuits, "
        "4 hosts in service (accelerators: 1 swapped out)"
    )
    work = {f"r1-h1-g{number}": State.DISABLED for number in range(2)}
    assert (
        "13 of 16 accelerators, 12 circuits, 4 hosts in service (accelerators: 1 swapped out, 2 in maintenance)"
        in words(kit.with_states(kit.swapped_out(seen, LOST), work))
    )
    assert words(kit.with_states(seen, {LOST: State.UNKNOWN})).startswith("○ no fault is known, but 1 comp")


def moved(kit, **changed):
    """A run that an operator stopped the job for, one minute old."""
    warnings = without_hook(kit.inventory(), ["llm"])
    before = list(kit.observation().assignment["llm"])
    ranks = ["r1-h4-g0" if name == LOST else name for name in before]
    assign = {"id": "8", "title": "record where llm runs", "do": "assign", "data": {}}
    assign["data"] = {"assignment": {"llm": ranks}, "before": {"llm": before}}
    plan = {"warnings": warnings, "steps": [assign]}
    return replace(kit.run(), plan=plan, started_at=START - 61, ended_at=START - 60, **changed)


def at_work(seen, accelerator):
    """The same look where a process is on an accelerator."""
    host = seen.snapshot.hosts["r1-h4"]
    gpus = tuple(
        replace(gpu, processes=(GpuProcess(9, "python"),)) if gpu.pci == "0000:1b:00.0" else gpu for gpu in host.gpus
    )
    assert seen.inventory.accelerators[accelerator].pci == "0000:1b:00.0"
    hosts = {**seen.snapshot.hosts, "r1-h4": replace(host, gpus=gpus)}
    return replace(seen, snapshot=replace(seen.snapshot, hosts=hosts))


def test_a_job_that_was_stopped_for_a_run_is_to_be_resumed_until_it_runs_again(kit):
    seen = kit.swapped_out(kit.observation(failed=None), LOST)
    watch, run = ResumptionWatch(), moved(kit, target="sim")
    stopped = watch.stopped(seen, [run])
    assert words(seen, stopped_jobs=stopped) == (
        f"◐ llm was not resumed after {run.id}; r1-h4-g0 is idle; resume it: lumctl sim resume llm"
    )
    todo = f"what to do: llm does not run yet; {stopped[0].advice}"
    assert todo in run_text(run_view(run, (), cut=False), MARKS, START, stopped_jobs=stopped).plain
    assert watch.stopped(at_work(seen, "r1-h4-g0"), [run]) == ()
    assert watch.stopped(seen, [run]) == (), "it ran: idle later, it has ended"


def test_a_job_on_a_rack_is_to_be_resumed_by_hand_and_not_before_what_failed_is_replaced(kit):
    seen = kit.swapped_out(kit.observation(failed=None), LOST)
    (stopped,) = ResumptionWatch().stopped(seen, [moved(kit, target="rack")])
    assert stopped.advice == "resume it by hand: it has no hook"
    another = with_findings(seen, finding("r1-h1-g0", "gpu.lost", "fell off the bus (XID 79)"))
    (stopped,) = ResumptionWatch().stopped(another, [moved(kit)])
    first, second = news_of(RecordedLook(another, stopped_jobs=(stopped,)))
    assert first.what.startswith("r1-h1-g0 fell off the bus")
    assert second.do == "replace r1-h1-g0 before you resume it"


def test_a_failed_rank_of_another_job_comes_before_a_job_to_resume_and_a_smaller_fault_after_it(kit):
    seen = kit.swapped_out(kit.observation(failed=None), LOST)
    stopped = ResumptionWatch().stopped(seen, [moved(kit, target="sim")])
    for state, place in ((State.FAILED, 1), (State.DEGRADED, 0)):
        ill = with_findings(seen, replace(finding("r1-h1-g0", "gpu.inforom", "corrupt"), state=state))
        whats = [news.what for news in news_of(RecordedLook(ill, stopped_jobs=stopped))]
        assert "was not resumed after" in whats[place], whats
        assert len(whats) == 2


@pytest.mark.parametrize(
    "changed",
    [{"state": "undone"}, {"state": "rolled-back"}, {"state": "running", "ended_at": None}],
)
def test_a_run_that_is_not_in_force_leaves_no_job_to_resume(kit, changed):
    seen = kit.swapped_out(kit.observation(failed=None), LOST)
    run = replace(moved(kit), **changed)
    assert ResumptionWatch().stopped(seen, [run]) == ()


def test_only_a_new_reading_of_an_idle_accelerator_says_that_a_job_does_not_run(kit):
    seen = kit.swapped_out(kit.observation(failed=None), LOST)
    run = moved(kit)
    assert ResumptionWatch().stopped(seen, [replace(run, ended_at=START)]) == (), "read before the run ended"
    later = replace(seen, at=run.ended_at + FORGOTTEN_S)
    assert ResumptionWatch().stopped(later, [run]) == (), "it was not forgotten: it has ended"
    hooked = replace(run, plan={**run.plan, "warnings": ()})
    assert ResumptionWatch().stopped(seen, [hooked]) == (), "nobody had to stop it"


def test_a_rule_without_words_of_its_own_shows_its_evidence_and_its_advice(kit):
    seen = with_findings(kit.observation(failed=None), finding("r1-h4-g0", "gpu.inforom", "corrupt " * 20))
    said = words(seen)
    assert said.startswith("✖ r1-h4-g0: corrupt corrupt")
    assert said.endswith("... (5: details); repair r1-h4-g0: look at it")


def test_a_fault_that_no_key_p_repairs_names_the_key_that_shows_more_of_it(kit):
    """One key at most, and none in a sentence without keys."""
    seen = kit.observation(failed=None)
    dark = finding("llm/4-5", "circuit.dark", "no light at either receiver", case="dark")
    circuits = {name: replace(seen.report.circuits[name], state=State.FAILED) for name in ("llm/4-5", "llm/5-6")}
    first = {"llm/4-5": replace(circuits["llm/4-5"], findings=(dark,))}
    one = replace(seen, report=replace(seen.report, circuits={**seen.report.circuits, **first}))
    assert words(one).startswith("✖ llm/4-5 is dark; llm is affected (5: details); measure where, or: lumctl swap plan")
    assert sentence(RecordedLook(one)).endswith("--failed r1-h2-g0,r1-h2-g1.")
    both = {**first, "llm/5-6": replace(circuits["llm/5-6"], findings=(replace(dark, component="llm/5-6"),))}
    two = replace(seen, report=replace(seen.report, circuits={**seen.report.circuits, **both}))
    assert words(two).endswith("5: 1 more")
    assert "details" not in words(two)
    hot = with_findings(seen, finding(LOST, "gpu.ecc", "uncorrectable errors"))
    assert "p: swap in" in words(hot)
    assert "details" not in words(hot)
    without = kit.with_states(hot, {f"r1-h4-g{n}": State.FAILED for n in range(4)})
    assert words(without).endswith("llm rank 5 is down (5: details); no spare that fits is free")


def test_accelerators_that_fail_with_one_cause_are_swapped_together(rack64):
    gone = [f"h07-gpu{n}" for n in range(4)]
    seen = rack64.look(START, failed=gone)
    report = seen.report
    incident = Incident("host:h07", "h07", "host.unreachable", State.FAILED, START - 60, ("h07", *gone), "h07: silent")
    silent = finding("h07", "host.unreachable", "no route", incident="host:h07")
    health = replace(report.hosts["h07"], state=State.FAILED, findings=(silent,))
    members = {
        name: replace(report.accelerators[name], findings=(replace(silent, component=name, incident="host:h07"),))
        for name in gone
    }
    report = replace(
        report,
        hosts={**report.hosts, "h07": health},
        accelerators={**report.accelerators, **members},
        incidents=(incident,),
    )
    seen = RecordedLook(replace(seen, report=report))
    said = headline(seen, news_of(seen), MARKS).plain
    assert said.startswith("✖ h07 does not answer, ")
    assert "; train-a ranks 6, 14, 22, 30 are out of sight; if really down, p: swap in 4 spares" in said
    for selected in (None, "h07-gpu2", "h07", "h01-gpu0"):  # what is ok is not what p is for
        assert choice_of(seen, selected).accelerators == tuple(gone)
    assert swaps_of_incident(seen, "host:h07") == tuple(gone)


def lit_from(seen, host, count):
    """The same look where so many of a host's transmitters bring light to other hosts; ``None``: no power was read."""
    lanes, circuits = [t.id for t in seen.inventory.transponders.values() if t.host == host], {}
    for name, circuit in seen.report.circuits.items():
        ends = tuple(
            replace(end, rx_power_dbm=None if count is None else -4.2 if lanes.index(end.expected) < count else DARK)
            if end.expected in lanes
            else end
            for end in circuit.ends
        )
        circuits[name] = replace(circuit, ends=ends)
    return replace(seen, report=replace(seen.report, circuits=circuits))


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (8, ", but its links carry light"),
        (3, ", 3 of its 8 links carry light"),
        (0, ", and its links are dark"),
        (None, ""),
    ],
)
def test_a_host_whose_links_carry_light_may_be_up_so_the_headline_names_the_details_and_not_p(count, told):
    """Only its management network may be lost; whether its links carry light, receivers at other hosts tell."""
    seen = RecordedLook(lit_from(dead_host(), "h07", count))
    effect = "train-a ranks 6, 14, 22, 30 are out of sight"
    said = headline(seen, news_of(seen), MARKS).plain
    may_be_up = "; 5: find out whether it is really down"
    todo = may_be_up if count else "; if really down, p: swap in 4 spares"
    assert said == f"✖ h07 does not answer over SSH{told}; {effect}{todo}"
    with_others = f"{said}  5: 1 more"
    assert len(Text(with_others).wrap(Console(), 78)) <= 2, "it does not fit the two lines of 80 columns"
    assert news_of(seen)[0].pane == ("incidents" if count else "")
    gone = tuple(f"h07-gpu{n}" for n in range(4))
    assert choice_of(seen, "h07-gpu2").accelerators == gone, "once it is known to be down, p replaces them"
    assert choice_of(seen, "h01-gpu0").accelerators == (() if count else gone)
    assert sentence(seen) == (
        f"h07 does not answer over SSH{told}; {effect}; "
        "if really down, lumctl swap plan --failed h07-gpu0,h07-gpu1,h07-gpu2,h07-gpu3."
    )
    (row,) = incident_rows(seen, MARKS)
    find_out = "ping it, or open its console through its BMC (s cannot work without SSH); if really down, "
    assert f"\n{find_out}p: replace h07-gpu0, h07-gpu1, h07-gpu2 and 1 more by spares" in row.cells[-1].text
    (case,) = cases_of(seen.observation.report).values()
    assert f"{find_out}replace h07-gpu0, " in head_text(seen, case, MARKS, START).plain


def test_a_host_whose_key_is_refused_does_answer():
    seen = dead_host()
    health = seen.report.hosts["h07"]
    hosts = {**seen.report.hosts, "h07": replace(health, findings=(replace(health.findings[0], case="host-key"),))}
    said = words(replace(seen, report=replace(seen.report, hosts=hosts)))
    assert said.startswith("✖ h07 shows an SSH key that is not trusted, but its links carry light; ")


def test_a_change_under_way_comes_first_then_what_waits_for_a_hand(kit):
    seen = kit.observation()
    running = Records(runs=(kit.run(8, state="running"),))
    assert words(seen, records=running).startswith(
        "◐ swap-0008 is in progress; llm: replace r1-h2-g1 by r1-h4-g0; 6: steps"
    )
    cut = replace(seen, unfinished=("swap-0008",))
    said = [news.words for news in news_of(RecordedLook(cut, running))]
    assert any("swap-0008" in each and "lumctl swap resume swap-0008" in each for each in said)
    assert not any("in progress" in each for each in said)


def test_a_plan_that_waits_names_the_pane_in_which_it_is_answered(kit):
    autopilot = {**kit.records().autopilots[0], "waiting": [{"plan": "plan-3", "title": "llm: replace it"}]}
    said = words(kit.observation(failed=None), records=Records(autopilots=(autopilot,)))
    assert said == "◐ plan-3 waits for approval; llm: replace it; 8: answer it"


def test_of_a_dark_circuit_no_end_is_swapped_while_nothing_shows_which_fails(kit):
    seen = kit.observation(failed=None)
    circuit = replace(kit.observation().report.circuits["llm/4-5"])
    seen = RecordedLook(
        replace(seen, report=replace(seen.report, circuits={**seen.report.circuits, "llm/4-5": circuit}))
    )
    (news,) = news_of(seen)
    assert news.swaps == ()
    assert news.do.startswith("measure where, or: lumctl swap plan --failed ")
    assert swaps_of_headline(seen) == swaps_of_component(seen.observation, "llm/4-5") == ()
    assert swaps_of_component(seen.observation, LOST) == (LOST,)  # an operator may choose one
    assert choice_of(seen, "llm/4-5").why_none.startswith("select what to replace among the accelerators (2)")


def test_what_is_cooled_first_is_swapped_only_where_it_is_selected(kit):
    hot = finding(LOST, "gpu.temperature", "93 C", state=State.DEGRADED, advice="check its cooling")
    seen = RecordedLook(with_findings(kit.observation(failed=None), hot, state=State.DEGRADED))
    assert news_of(seen)[0].do == "check its cooling"
    assert swaps_of_headline(seen) == ()
    assert choice_of(seen, LOST).accelerators == (LOST,)


def test_where_nothing_may_be_changed_no_key_is_offered(kit):
    assert "p:" not in words(kit.observation(), forbidden="read-only")


def test_a_daemon_that_no_longer_answers_is_reported_until_one_does():
    watch = DaemonWatch()
    assert watch.trouble(Records(), START) == ""
    assert watch.trouble(Records(watched=False), START) == ""  # none ran
    assert watch.trouble(Records(watched=True), START) == ""
    told = "the daemon (lumctl watch) no longer answers, last 30 s ago: notifications, policies and history do not work"
    assert watch.trouble(Records(watched=False), START + 30) == told
    assert watch.trouble(Records(watched=True), START + 40) == ""
    assert (
        DaemonWatch()
        .trouble(Records(watched=False, daemon_left=True), START)
        .startswith("the daemon (lumctl watch) died")
    )


def cut_off_beside_a_silent_mesh():
    """A circuit of a job is dark, and the controller of another mesh does not answer."""
    seen = dark_transmitter()
    silent = finding("rail0", "device.unreachable", "connection refused", gravity=90, advice="check its controller")
    rail0 = replace(seen.report.devices["rail0"], state=State.FAILED, findings=(silent,))
    return replace(seen, report=replace(seen.report, devices={**seen.report.devices, "rail0": rail0}))


def test_a_rank_that_is_cut_off_comes_before_a_mesh_that_does_not_answer():
    seen = RecordedLook(cut_off_beside_a_silent_mesh())
    first, second = news_of(seen)
    assert "is cut off" in first.means
    assert second.what == "rail0 does not answer"
    assert [row.component for row in incident_rows(seen, MARKS)] == [first.what.partition(" ")[0], "rail0"]
    # Where there is room, the headline names both.
    whole = headline(seen, news_of(seen), MARKS, 200).plain
    assert whole == f"✖ {first.words}; also: rail0 does not answer  5: 1 more"
    narrow = headline(seen, news_of(seen), MARKS, len(whole) - 1).plain
    assert narrow == f"✖ {first.words}  5: 1 more"


def test_the_death_of_the_daemon_is_in_the_headline(kit):
    said = words(kit.observation(failed=None), daemon_trouble="the daemon died: policies stand still")
    assert said == "◐ the daemon died: policies stand still; start it: lumctl watch"


def test_a_forgotten_target_comes_before_all(kit):
    said = words(kit.observation(failed=None), daemon_trouble="the daemon died", forgotten_target="a simulator runs")
    assert said.startswith("○ a simulator runs")


def test_the_strip_counts_states_spares_and_jobs_at_risk(rack64):
    seen = RecordedLook(rack64.look(START, failed=["h03-gpu2"]), Records(watched=True))
    (line, *more) = [each.plain for each in strip_lines(seen, MARKS, START, 200)]
    assert not more
    assert "accelerators ✖1 failed, 63 ok" in line
    assert "spares left rail0 1, rail1 1, rail2 1, rail3 1" in line
    assert "jobs at risk: train-a (failed)   " in line
    assert "daemon watches" in line
    assert "last change none" in line
    narrow = [each.plain for each in strip_lines(seen, Marks(ASCII_GLYPHS, ascii_only=True), START, 40)]
    assert len(narrow) > 2
    assert all(len(each) <= 40 and each.isascii() for each in narrow)


def test_a_job_whose_accelerator_is_in_maintenance_is_at_risk(kit):
    seen = kit.with_states(kit.observation(failed=None), {"r1-h1-g0": State.DISABLED})
    line = strip_lines(RecordedLook(seen), MARKS, START, 300)[0].plain
    assert "jobs at risk: llm (in maintenance)" in line


def test_the_strip_names_the_autopilot_and_the_last_change(kit):
    line = strip_lines(RecordedLook(kit.observation(failed=None), kit.records()), MARKS, START, 300)[0].plain
    assert "jobs 1 without risk (all ok, a spare fits each rank)" in line
    assert "autopilot may act" in line
    assert "last change swap-0007 done 38 s ago" in line


def test_spares_are_grouped_by_rail_and_name_the_ranks_that_they_can_replace(rack64):
    seen = rack64.look(START, failed=["h16-gpu1"])
    groups = {group.name: group for group in groups_of(seen)}
    assert groups["rail0"].free == ("h16-gpu0",)
    assert groups["rail1"].free == ()
    assert groups["rail1"].unfit[0][0] == "h16-gpu1"
    assert [(each.job, number_ranges(each.ranks)) for each in users_of(seen, "h16-gpu2")] == [
        ("train-a", "16-23"),
        ("train-b", "14-20"),
    ]
    assert fitting(RecordedLook(seen), ["h03-gpu2", "h03-gpu1"]) == [("h16-gpu2",), ()]
    text = "\n".join(line.plain for line in spare_lines(seen, MARKS))
    assert "rail1: 0 free, 1 not usable, 0 used" in text
    assert "can replace train-a ranks 16-23; train-b ranks 14-20" in text
    assert "15 ranks share 1 spare" in text


def test_a_spare_to_which_fibres_lead_fits_too():
    seen = Looks(load_inventory(example("two-meshes")), target="sim").look(START, failed=["h1-gpu0", "h5-gpu0"])
    assert fitting(RecordedLook(seen), ["h1-gpu0"]) == [("h6-gpu0",)]
    assert words(seen).startswith("✖ h1-gpu0 fell off the bus; train rank 0 is down; p: swap in h6-gpu0")
    assert [(each.job, number_ranges(each.ranks)) for each in users_of(seen, "h6-gpu0")] == [("train", "0-3")]


def test_the_jobs_that_wait_for_spares_come_first_with_what_they_wait_for(rack64):
    asked = [("h03-gpu2", "train-a"), ("h05-gpu2", "train-a"), ("h16-gpu1", "gone")]
    waiting = tuple(
        QueuedDemand("rack64", f"demand-000{at}", job, (name,), "ann@console", START - 60)
        for at, (name, job) in enumerate(asked, 1)
    )
    seen = RecordedLook(rack64.look(START, failed=["h03-gpu2", "h05-gpu2"]), Records(waiting=waiting))
    head, first, command, second, third, cancel, _ = [line.plain for line in waiting_lines(seen)]
    assert head == "waiting for spares"
    assert first == "  demand-0001 train-a for h03-gpu2, 60 s: h16-gpu2 can replace it now"
    assert command == "    lumctl swap plan train-a --failed h03-gpu2 --target sim"
    assert "60 s: waits: h16-gpu2 goes to demand-0001 first (sharing policy best-fit); h16-gpu0 no fibre" in second
    assert third == "  demand-0003 gone for h16-gpu1, 60 s: needs no spare: job gone no longer exists"
    assert cancel == "    lumctl spare queue cancel demand-0003 --target sim"
    assert list(waiting_lines(RecordedLook(seen.observation))) == []
    # For the one that does not come first a plan would be refused, so its message names no spare.
    assert fitting(seen, ["h03-gpu2"]) == [("h16-gpu2",)]
    assert fitting(seen, ["h05-gpu2"]) == [()]
    said = {each.swaps: each.do for each in news_of(seen)}
    assert said["h03-gpu2",] == "p: swap in h16-gpu2"
    assert said["h05-gpu2",] == "no spare fits it"


def test_how_long_the_spares_last_is_told_for_each_pool_with_a_history(rack64):
    seen, key = rack64.look(START, failed=["h16-gpu1"]), ("rack64", "NVIDIA H100 80GB HBM3")
    forecast = PoolForecast(5, START - 50 * 86_400, START, rate=1e-6, low=5e-7, high=2e-6)
    told = [line.plain for line in forecast_lines(RecordedLook(seen, Records(forecasts={key: forecast})))]
    assert told == [f"{key[0]}, {key[1]}: {forecast.words(3, START)}", ""]
    assert list(forecast_lines(RecordedLook(seen, Records(forecasts={("gone", "X"): forecast})))) == []


def test_a_spare_that_runs_a_rank_is_used(kit):
    seen = kit.swapped_out(kit.observation(), LOST)
    (group,) = groups_of(seen)
    assert group.name == "H100"
    assert group.used == ("r1-h4-g0",)
    assert "runs llm rank 5" in "\n".join(line.plain for line in spare_lines(seen, MARKS))
    assert number_ranges((0, 1, 2, 4, 7, 8)) == "0-2, 4, 7-8"


def test_where_no_reading_shows_which_end_fails_p_replaces_none_of_them(kit):
    seen = kit.observation(failed=None)
    circuit = seen.report.circuits["llm/4-5"]
    dark = Finding(
        "llm/4-5", "circuit.dark", State.FAILED, "no light at either receiver", "look", START - 60, case="dark"
    )
    circuits = {**seen.report.circuits, "llm/4-5": replace(circuit, state=State.FAILED, findings=(dark,))}
    seen = RecordedLook(replace(seen, report=replace(seen.report, circuits=circuits)))
    (news,) = news_of(seen)
    assert news.swaps == ()
    told = "llm/4-5 is dark; llm is affected; measure where, or: lumctl swap plan --failed r1-h2-g0,r1-h2-g1"
    assert news.words == told


def test_what_a_run_repairs_now_is_no_second_fault_and_its_spare_is_no_longer_left(kit):
    begun = kit.run(8, state="running", rack="rack64", title="train-a: replace h03-gpu2 by h16-gpu2")
    plan = {**begun.plan, "replacements": [{"failed": "h03-gpu2", "spare": "h16-gpu2"}]}
    seen = RecordedLook(lost_gpu(), Records(runs=(replace(begun, plan=plan),), watched=True))
    assert seen.moving == {"h03-gpu2": "h16-gpu2"}
    told = "◐ swap-0008 is in progress; train-a: replace h03-gpu2 by h16-gpu2; 6: steps"
    assert headline(seen, news_of(seen), MARKS).plain == told
    choice = choice_of(seen, "h03-gpu2")
    assert (choice.accelerators, choice.why_none) == ((), "swap-0008 replaces h03-gpu2 now: 6 shows its steps")
    strip = " ".join(line.plain for line in strip_lines(seen, MARKS, START, 200))
    assert "rail1 1, rail2 0, rail3 1" in strip
    assert "last change swap-0008 under way" in strip
    cut = replace(seen, observation=replace(seen.observation, unfinished=("swap-0008",)))
    assert not cut.moving
    assert choice_of(cut, "h03-gpu2").accelerators == ("h03-gpu2",)


def test_a_look_says_that_the_target_was_forgotten(kit):
    seen = kit.observation(failed=None)
    look = Sources(lambda: seen, forgotten_target=lambda report: f"{len(report.hosts)} hosts are silent").look()
    assert words(look.observation, forgotten_target=look.forgotten_target).startswith(
        f"○ {len(seen.report.hosts)} hosts are silent"
    )
