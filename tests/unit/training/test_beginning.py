"""A job that begins: who does not come up, and why, is told, and nobody waits for ever."""

import pytest
from theatre import Theatre

from lumctl.inventory.running import WithoutSpare
from lumctl.training.ends import End
from lumctl.training.standing import Phase


def opened(theatre):
    for host in theatre.coordinator.hosts():
        theatre.open(host)
    theatre.settle()
    return theatre


def never_ready(theatre, *accelerators, met=False):
    """Have processes on these accelerators start and say nothing, or hello only."""
    said = {"say": "hello", "pid": 7} if met else {"say": "beat"}
    ready = theatre.ready
    theatre.ready = lambda player: said if player.accelerator in accelerators else ready(player)
    return theatre


def dying(theatre, **told):
    """Have every process end with code 1 before it is ready."""
    ask = theatre.ask

    def ask_and_die(host, message):
        found = ask(host, message)
        if message["ask"] == "start":
            exited = {"tell": "exited", "worker": message["worker"], "code": 1, "signal": None, "at": theatre.at}
            del theatre.players[message["worker"]]
            theatre.later(message["worker"], lambda: theatre.hears(host, {**exited, **told}))
        return found

    object.__setattr__(theatre.means, "ask", ask_and_die)
    return theatre


def test_the_last_line_of_a_log_is_told_with_the_reason(tmp_path):
    theatre = opened(dying(Theatre(tmp_path), printed="ModuleNotFoundError: No module named 'x'"))
    coordinator = theatre.coordinator
    assert coordinator.phase is Phase.STOPPED
    assert (
        "h2-a#1 ended with exit code 1 before it was ready: ModuleNotFoundError: No module named 'x' "
        "(log: h2-a#1.log on h2)"
    ) in theatre.said
    assert "before it was ready: ModuleNotFoundError: No module named 'x' (log: " in coordinator.document()["why"]


@pytest.mark.parametrize("told", [{}, {"printed": ""}, {"printed": None}])
def test_one_that_has_printed_nothing_has_its_log_named(tmp_path, told):
    theatre = opened(dying(Theatre(tmp_path), **told))
    assert "h2-a#1 ended with exit code 1 before it was ready (log: h2-a#1.log on h2)" in theatre.said


def test_what_an_agent_tells_of_a_log_cannot_move_the_terminal(tmp_path):
    theatre = opened(dying(Theatre(tmp_path), printed="a\n\x1b[2J" + "b" * 100_000))
    assert all(line.isprintable() and len(line) < 2_000 for line in theatre.said)


def test_the_first_group_begins_and_the_next_one_goes_on(theatre):
    assert theatre.said == ["4 ranks begin (group 1)"]
    theatre.kill("h1-a#1")
    theatre.settle()
    assert "4 ranks go on after 1 step (group 2)" in theatre.said


def test_where_ranks_have_found_a_checkpoint_of_their_own_it_is_told_where_they_go_on(tmp_path):
    theatre = Theatre(tmp_path)
    say = theatre.say
    theatre.say = lambda player, message, **more: say(
        player, {**message, "done": 705} if not callable(message) and message["say"] == "joined" else message, **more
    )
    opened(theatre)
    assert theatre.said == ["4 ranks go on after 705 steps (group 1)"]


def test_it_is_told_for_whom_the_job_waits_now_and_then(tmp_path):
    theatre = opened(never_ready(Theatre(tmp_path), "h1-a", "h2-a"))
    assert theatre.said == []
    for _ in range(125):
        theatre.wait(1)
    shown = [line for line in theatre.said if "waiting for" in line]
    assert [line.partition("(")[0] for line in shown] == ["starting: waiting for h[1-2]-a "] * 3
    assert [float(line.partition("(")[2].partition(" ")[0]) for line in shown] == pytest.approx([30, 60, 120], abs=5)
    assert theatre.coordinator.document()["why"].startswith("waiting for h[1-2]-a (12")
    assert theatre.coordinator.phase is Phase.STARTING


@pytest.mark.parametrize(("met", "missing"), [(False, "has not said that it belongs"), (True, "has not come to its")])
def test_a_job_one_of_whose_processes_never_gets_ready_stops_and_says_which(tmp_path, met, missing):
    theatre = opened(never_ready(Theatre(tmp_path, start_s=300), "h1-a", met=met))
    theatre.wait(299)
    assert theatre.coordinator.phase is Phase.STARTING
    theatre.wait(2)
    assert theatre.coordinator.phase is Phase.STOPPED
    assert theatre.coordinator.end is End.NOT_STARTED
    why = theatre.coordinator.why_ended
    assert why.startswith(f"h1-a#1 {missing}")
    assert why.endswith("within 300 s (start_s) (log: h1-a#1.log on h1)")
    assert "h1-a#1" not in theatre.players


def test_once_a_job_has_run_another_process_is_started_instead(tmp_path):
    theatre = opened(Theatre(tmp_path, start_s=300))
    theatre.does_a_step()
    ready = theatre.ready
    never_ready(theatre, "h1-a")
    theatre.kill("h1-a#1")
    theatre.settle()
    theatre.wait(31)
    assert any(line.startswith("recovering: waiting for h1-a (3") for line in theatre.said)
    theatre.ready = ready
    theatre.wait(300)
    theatre.come_to_rest()
    theatre.does_a_step()
    assert "h1-a#3" in theatre.group()


def test_a_spare_that_never_gets_ready_does_not_stop_a_job_that_runs(tmp_path):
    theatre = opened(Theatre(tmp_path, start_s=300))
    never_ready(theatre, "h4-a")
    theatre.does_a_step()
    theatre.wait(310)
    assert theatre.coordinator.phase is Phase.RUNNING
    assert any("h4-a#1 hangs before it was ready" in line and "started later" in line for line in theatre.said)
    assert not any("waiting for" in line for line in theatre.said)


def test_a_rank_is_not_started_on_an_accelerator_that_is_known_to_have_failed(tmp_path):
    theatre = Theatre(tmp_path)
    theatre.broken.add("h1-a")
    opened(theatre)
    theatre.does_a_step()
    assert "h1-a#1" not in {player.name for player in [*theatre.players.values(), *theatre.dead]}
    assert "h4-a#1" in theatre.group()
    (recovery,) = theatre.coordinator.document()["recoveries"]
    assert (recovery["cause"], recovery["replaced_by"]) == ("h1-a: it is lost", {"h1-a": "h4-a"})


@pytest.mark.parametrize("policy", [WithoutSpare.WAIT, WithoutSpare.STOP])
def test_without_a_spare_it_waits_or_refuses_as_its_policy_says(tmp_path, policy):
    theatre = Theatre(tmp_path, without_spare=policy)
    theatre.broken |= {"h1-a", "h4-a", "h5-a"}
    opened(theatre)
    assert not theatre.players
    found = theatre.coordinator.document()
    if policy is WithoutSpare.STOP:
        assert (found["state"], found["end"]) == ("stopped", "no-spare")
        assert theatre.coordinator.end.exit_code == 5
        return
    assert (found["state"], found["why"]) == ("waiting", "no spare is left")
    theatre.broken.discard("h1-a")
    theatre.wait(6)
    theatre.does_a_step()
    assert theatre.coordinator.document()["recoveries"] == []
