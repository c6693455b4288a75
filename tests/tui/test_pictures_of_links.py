"""Link matrix, loss budget and timeline, as text."""

from dataclasses import replace

from lumctl.cli.output import ASCII_GLYPHS, GLYPHS
from lumctl.health.states import State
from lumctl.tui.look.marks import Marks
from lumctl.tui.views.link_matrix import matrix_lines, receivers_on
from lumctl.tui.views.losses import loss_lines, losses_of
from lumctl.tui.views.records import Line, RecordedLook, Records, Working
from lumctl.tui.views.timeline import moments_of, timeline_lines

MARKS = Marks(GLYPHS)
LOST = "r1-h2-g1"


def with_ends(seen, circuit, **changed):
    """The same look where both receivers of a circuit are read otherwise."""
    health = seen.report.circuits[circuit]
    ends = tuple(replace(end, **changed) for end in health.ends)
    circuits = {**seen.report.circuits, circuit: replace(health, ends=ends)}
    return replace(seen, report=replace(seen.report, circuits=circuits))


def text(lines):
    return "\n".join(line.plain for line in lines)


def test_each_receiver_has_a_row_with_whom_it_hears_its_power_and_its_margin(kit):
    seen = kit.observation()
    receivers = {each.transponder: each for each in receivers_on(seen, "mesh1")}
    assert len(receivers) == 24
    well = receivers["r1-h1-g0-l1"]
    assert (well.hears, well.expected, well.state) == ("r1-h1-g1-l0", "r1-h1-g1-l0", State.OK)
    assert well.margin_db == well.rx_power_dbm + 14
    assert receivers[f"{LOST}-l0"].state is State.FAILED
    drawn = text(matrix_lines(seen, "mesh1", MARKS, 120))
    assert "20 of 24 receivers are proved to hear their transmitter; 4 hear no light, or the wrong one" in drawn
    row = next(line for line in drawn.splitlines() if "r1-h1-g0-l1" in line)
    assert row.count("●") == 1
    assert row.split()[-3:] == ["-4.2", "+9.8", "dB"]
    dark = next(line for line in drawn.splitlines() if f"{LOST}-l0" in line)
    assert dark.count("✖") == 1
    assert dark.split()[-2:] == ["dark", "-"]


def test_a_receiver_that_hears_another_transmitter_is_marked_at_both(kit):
    seen = with_ends(kit.observation(failed=None), "llm/0-1", hears="r1-h3-g0-l0")
    lines = list(matrix_lines(seen, "mesh1", MARKS, 120))
    row = next(line.plain for line in lines if "r1-h1-g0-l1" in line.plain)
    assert "!" in row
    assert "✖" in row


def test_what_is_not_proved_and_what_has_little_margin_is_told_apart(kit):
    seen = with_ends(kit.observation(failed=None), "llm/0-1", hears=None, rx_power_dbm=-13.5)
    receivers = {each.transponder: each for each in receivers_on(seen, "mesh1")}
    assert receivers["r1-h1-g0-l1"].state is State.DEGRADED
    assert "2 with too little margin" in text(matrix_lines(seen, "mesh1", MARKS, 120))
    unread = with_ends(seen, "llm/0-1", hears=None, rx_power_dbm=None)
    assert {each.transponder: each for each in receivers_on(unread, "mesh1")}["r1-h1-g0-l1"].state is State.UNKNOWN


def test_where_the_columns_do_not_fit_the_transmitter_is_named(kit):
    marks = Marks(ASCII_GLYPHS, ascii_only=True)
    drawn = text(matrix_lines(kit.observation(), "mesh1", marks, 60))
    assert "RECEIVER" in drawn
    assert "r1-h1-g0-l1  r1-h1-g1-l0" in drawn
    assert all(len(line) <= 60 for line in drawn.splitlines()[1:])
    assert text(matrix_lines(kit.observation(), "mesh9", MARKS, 60)) == "no circuit passes mesh9"


def test_loss_is_measured_from_what_is_sent_and_the_budget_from_what_is_needed(kit):
    losses = {each.receiver: each for each in losses_of(kit.observation())}
    well = losses["r1-h1-g0-l1"]
    assert (round(well.measured_db, 1), well.budget_db, round(well.margin_db, 1)) == (4.2, 14.0, 9.8)
    assert losses[f"{LOST}-l0"].margin_db == float("-inf")


def test_the_histogram_counts_every_receiver_once_and_names_the_worst(kit):
    seen = with_ends(kit.observation(), "llm/0-1", rx_power_dbm=-13.5)
    drawn = text(loss_lines(seen, "mesh1", MARKS, 80))
    assert "24 receivers; budget 14 dB" in drawn
    bars = [line.split() for line in drawn.splitlines() if "█" in line]
    assert bars[0][:2] == ["dark", "4"]
    assert sum(int(bar[-2]) for bar in bars) == 24
    worst = drawn.split("LEAST LEFT")[1]
    assert worst.splitlines()[1].split()[-1] == "dark"
    assert all(len(line) <= 80 for line in drawn.splitlines())
    assert text(loss_lines(seen, "mesh9", MARKS, 80)) == "no receiver of a circuit has been read"
    assert text(loss_lines(seen, None, Marks(ASCII_GLYPHS, ascii_only=True), 60)).isascii()


def story(kit):
    """A loss, its swap step by step, and the next step of the job."""
    at = kit.START - 95
    run = kit.run(
        7, plan={"created_at": at + 20, "replacements": [{"job": "llm", "failed": LOST, "spare": "r1-h4-g0"}]}
    )
    lines = (
        Line(at + 32.5, "r1", "ops", "swap-0007 ends: done in 1.51 s", run="swap-0007"),
        Line(at + 32, "r1", "ops", "swap-0007 done: prove it, 4 receivers proved", run="swap-0007"),
        Line(at + 31, "r1", "ops", "swap-0007 begins: llm: replace", run="swap-0007"),
        Line(at, "r1", "health", f"{LOST} is failed, was ok", State.FAILED, component=LOST),
        Line(at - 9, "r1", "health", "r1-h1-g0 is failed, was ok", State.FAILED, component="r1-h1-g0"),
    )
    recovery = {"run": "swap-0007", "at": at, "failure_to_step_s": 40.0}
    working = Working("llm", {"recoveries": [recovery]})
    return RecordedLook(kit.observation(), Records(runs=(run,), log=lines, working=(working,)))


def test_the_timeline_goes_from_the_fault_to_the_next_training_step(kit):
    told = [moment.text for moment in moments_of(story(kit), f"accelerator:{LOST}")]
    order = [
        "is failed, was ok",
        "detected: ",
        "planned: ",
        "begins",
        "4 receivers proved",
        "ends: done",
        "next training",
    ]
    places = [next(n for n, each in enumerate(told) if word in each) for word in order]
    assert places == sorted(places)
    assert not any("r1-h1-g0" in each for each in told)
    lines = [line.plain for line in timeline_lines(story(kit), f"accelerator:{LOST}", MARKS)]
    assert "+0.00 s" in lines[0]
    assert "+40.00 s" in lines[-1]
    ascii_lines = timeline_lines(story(kit), f"accelerator:{LOST}", Marks(ASCII_GLYPHS, ascii_only=True))
    assert text(ascii_lines).isascii()


def test_an_incident_that_is_over_keeps_its_timeline(kit):
    seen = story(kit)
    over = replace(seen, observation=kit.observation(failed=None))
    assert any("planned" in moment.text for moment in moments_of(over, f"accelerator:{LOST}"))
    assert any("planned" in moment.text for moment in moments_of(over, "host:r1-h2"))
    assert text(timeline_lines(RecordedLook(over.observation), "host:r1-h9", MARKS)) == "nothing is recorded about it"


def test_without_a_job_of_ours_it_says_that_no_training_step_is_known(kit):
    seen = RecordedLook(kit.observation())
    assert "no later training step is known" in text(timeline_lines(seen, f"accelerator:{LOST}", MARKS))


def test_they_are_a_key_away_and_so_is_the_table_of_racks(stage, kit):
    async def script(pilot):
        for keys, said in (
            (["s"], "4 spares"),
            (["escape", "x"], "receivers are proved to hear"),
            (["b"], "LEAST LEFT"),
            (["escape", "escape", "5", "enter", "t"], "detected: "),
            (["escape", "escape", "1", "t"], "6 racks, meshes and hosts"),
            (["t", "m"], "temperature in C"),
        ):
            await pilot.press(*keys)
            await kit.until(pilot, lambda said=said: said in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script)
