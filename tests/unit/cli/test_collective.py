"""``lumctl collective``: plans in all formats, checks of files, advice; bad input is one line with its place."""

import json

import pytest
from late_rank_log import LOG

from lumctl.cli.main import run
from lumctl.inventory.load import example


@pytest.fixture
def collective(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("LUMCTL_TARGET", "LUMCTL_INVENTORY"):
        monkeypatch.delenv(name, raising=False)

    def command(*words):
        code = run(["collective", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_a_plan_is_a_table_with_its_bound(collective):
    code, out, err = collective("plan", "4")
    assert code == 0
    assert err == "stragglar, 4 ranks, straggler 3: 4 rounds after the arrival, proven to be the fewest\n"
    assert out.splitlines()[1] == "    0  1 -> 3: +1  3 -> 2: +0"
    assert collective("plan", "13", "-o", "name") == (0, "15\n", "")


@pytest.mark.parametrize("form", ["json", "msccl", "mscclpp"])
@pytest.mark.parametrize("ranks", ["5", "8"])
def test_a_plan_is_checked_in_every_format(collective, tmp_path, form, ranks):
    code, out, _ = collective("plan", ranks, "--straggler", "2", "-o", form)
    assert code == 0
    (tmp_path / "plan").write_text(out)
    code, out, err = collective("check", "plan", "--straggler", "2")
    assert (code, err) == (0, "")
    assert out.startswith("ok: ")
    assert f"{ranks} ranks, straggler 2: {6 if ranks == '5' else 9} rounds after the arrival" in out


def test_the_other_formats(collective):
    assert "  3 -> 2: +0" in collective("plan", "4", "-o", "text")[1]
    assert "op: reduce" in collective("plan", "4", "-o", "yaml")[1]
    assert collective("plan", "4", "-o", "msccl")[2].endswith("; not run on GPUs\n")


def test_a_loss_is_reported_as_a_loss(collective, tmp_path):
    (tmp_path / "plan").write_text(collective("plan", "8", "-o", "json")[1])
    assert collective("check", "plan")[1].splitlines() == [
        "ok: stragglar, 8 ranks, straggler 7: 9 rounds after the arrival, lower bound 9",
        "after the arrival: 1.361 of ring's speed",
        "whole, without a delay: 0.817 of ring's speed, a loss",
        "whole, at the best delay: 1.217 of ring's speed",
    ]
    costs = ("--bytes", "1GB", "--bandwidth", "100GB/s", "--alpha", "5us", "--delay", "3ms")
    document = json.loads(collective("check", "plan", *costs, "-o", "json")[1])
    assert (document["ok"], document["rounds"], document["lower_bound"]) == (True, 9, 9)
    assert document["cost"]["delay_s"] == 0.003
    assert document["cost"]["gain_without_delay"] < document["cost"]["gain_at_delay"] < document["cost"]["gain_best"]
    assert collective("check", "plan", *costs)[1].splitlines()[-1].startswith("whole, with a delay of 3ms: ")


def test_a_broken_schedule_is_reported_with_round_rank_and_chunk(collective, tmp_path):
    document = json.loads(collective("plan", "4", "-o", "json")[1])
    send = document["rounds"][2]["sends"][0]
    send["to"] = send["from"]
    (tmp_path / "plan").write_text(json.dumps(document))
    code, out, err = collective("check", "plan")
    assert (code, err) == (4, "")
    assert out == f"broken: round 2, rank {send['from']}, chunk {send['chunks'][0]}: sends to itself\n"
    code, out, _ = collective("check", "plan", "-o", "json")
    assert code == 4
    assert json.loads(out)["fault"] == {
        "round": 2,
        "rank": send["from"],
        "chunk": send["chunks"][0],
        "place": None,
        "message": "sends to itself",
    }


def test_only_a_proven_plan_is_optimal(collective):
    assert collective("plan", "29", "--optimal", "-o", "name") == (0, "32\n", "")
    code, _, err = collective("plan", "8", "--algorithm", "halving-doubling", "--optimal")
    assert code == 5
    assert err.startswith("lumctl: halving-doubling has 6 rounds, and the lower bound is 3: not proven\n")


def test_the_advice_of_a_log(collective, tmp_path):
    (tmp_path / "log.csv").write_text(LOG)
    code, out, err = collective("advise", "--ranks", "4", "--bytes", "100MB", "--log", "log.csv")
    assert (code, err) == (0, "")
    assert out.startswith("do not use the schedule: with 4 ranks and a gap of 7.5 ms")
    assert "late rank: 1, last in 5 of 6 steps" in out
    assert collective("advise", "--log", "log.csv", "-o", "name") == (0, "do-not\n", "")
    document = json.loads(collective("advise", "--log", "log.csv", "--gap", "60ms", "-o", "json")[1])
    assert document["schema"] == "lumctl/collective-advice/v1"
    assert (document["recommended"], document["late_rank"]["rank"], document["bytes"]) == (True, 1, None)
    assert document["break_even_s"] == pytest.approx(0.0333, abs=1e-4)


def test_the_advice_of_given_and_of_measured_costs(collective, tmp_path):
    given = ("advise", "--ranks", "8", "--bytes", "256MiB", "--gap", "12ms")
    assert collective(*given, "--bandwidth", "50GB/s")[1].startswith(
        "use the schedule: with 8 ranks and a gap of 12 ms"
    )
    rows = [f"{size},{14 * 5e-6 + 1.75 * size / 50e9}" for size in (1e3, 1e4, 1e6, 1e7, 1e8)]
    (tmp_path / "measured.csv").write_text("\n".join(["bytes,seconds", *rows]))
    out = collective(*given, "--collectives", "measured.csv")[1]
    assert out.startswith("use the schedule: with 8 ranks and a gap of 12 ms it runs at 1.1")
    assert "fitted: alpha 5.0 us (95 %: 5.0 us to 5.0 us), bandwidth 50 GB/s" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "0"), "0 ranks: a schedule has 2 to 1024"),
        (("plan", "1"), "1 ranks: a schedule has 2 to 1024"),
        (("plan", "1025"), "1025 ranks: a schedule has 2 to 1024"),
        (("plan", "many"), "N: 'many' is not a whole number"),
        (("plan", "9" * 9999), "N: '99999"),
        (("plan", "8", "--straggler", "8"), "straggler 8 is none of the ranks 0 to 7"),
        (("plan", "8", "--straggler=-1"), "straggler -1 is none of the ranks 0 to 7"),
        (("plan", "8", "--algorithm", "rign"), "--algorithm: 'rign' is not an algorithm"),
        (("plan", "8", "--algorithm", "ring", "--straggler", "1"), "--straggler is for stragglar only"),
        (("plan", "6", "--algorithm", "halving-doubling"), "halving-doubling needs a power of two, not 6 ranks"),
        (("check", "nowhere"), "nowhere cannot be read: No such file or directory"),
        (("check", "."), ". cannot be read: Is a directory"),
        (("check", "broken"), "broken: line 1, column 10: not JSON"),
        (("check", "bomb"), "bomb: line 1: found a document type, which is refused"),
        (("check", "log"), "log: line 1, column 1: not JSON"),
        (("check", "plan", "--straggler", "1"), "--straggler: the straggler of this schedule is 3"),
        (("check", "program", "--straggler", "4"), "program: straggler 4 is none of the ranks 0 to 3"),
        (("check", "plan", "--delay", "soon"), "--delay: 'soon' is not a time"),
        (("check", "plan", "--delay", "1s"), "--delay needs --bytes and --bandwidth"),
        (("check", "plan", "--bytes", "1GB"), "--bytes and --bandwidth are given together"),
        (("advise",), "--ranks, --bytes and --gap are needed without a log"),
        (("advise", "--ranks", "4", "--bytes", "1GB", "--gap", "1s"), "what does a collective cost?"),
        (("advise", "--ranks", "1025", "--bytes", "1", "--gap", "1s"), "1025 ranks: a schedule has 2 to 1024"),
        (("advise", "--log", "log", "--ranks", "5"), "--ranks: log has 4 ranks, not 5"),
        (("advise", "--log", "log", "--skip", "3"), "log: 4 steps are too few to name a late rank"),
        (("advise", "--log", "nan"), "nan: line 3: rank 1: found 'nan', expected a number"),
        (("advise", "--log", "twice"), "twice: line 3: step 0 is there twice, first on line 2"),
        (("advise", "--log", "short"), "short: line 3: found 3 values, expected 5"),
        (
            ("advise", "--collectives", "log", "--ranks", "4", "--bytes", "1", "--gap", "1s"),
            "log: line 1: found 'step,",
        ),
        (("advise", "--collectives", "log", "--alpha", "1us"), "--collectives gives the costs"),
    ],
)
def test_bad_input_is_one_line_with_its_place(collective, tmp_path, words, said):
    lines = LOG.splitlines()
    files = {
        "broken": '{"rounds"',
        "bomb": '<!DOCTYPE algo [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><algo name="&b;"/>',
        "plan": collective("plan", "4", "-o", "json")[1],
        "program": collective("plan", "4", "-o", "msccl")[1],
        "log": LOG,
        "nan": LOG.replace("101.0", "nan"),
        "twice": "\n".join([*lines[:2], lines[1], *lines[2:]]),
        "short": "\n".join([*lines[:2], lines[2].rsplit(",", 2)[0], *lines[3:]]),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    code, out, err = collective(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"lumctl: {said}")
    assert "Traceback" not in err
    assert not any(line and not line.startswith("  hint: ") for line in err.splitlines()[1:])


def test_a_file_of_100_mb_is_refused(collective, tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(100_000_000)
    code, out, err = collective("check", "large")
    assert (code, out, err) == (2, "", "lumctl: large: larger than 80 MB, the most that is read\n")
    assert "larger than 64 MB" in collective("advise", "--log", "large")[2]


def test_a_plan_on_the_light_of_a_job(collective):
    ring8 = ("-i", str(example("ring8")), "--job", "train")
    code, out, err = collective("plan", "8", *ring8)
    assert code == 0
    assert [line.split()[-1] for line in out.splitlines()[1:]] == ["1", "2", "3", "8", "7", "7", "4", "7", "2"]
    assert err.splitlines()[1:] == [
        "the light of train carries 0 of 9 rounds at once; what it does not carry needs another network",
        "light for every round needs at least 5 changes in each all-reduce, which take 25 ms (5.0 ms each)",
        "a ring all-reduce needs no change",
    ]
    assert "carries 14 of 14 rounds at once\n" in collective("plan", "8", "--algorithm", "ring", *ring8)[2]
    document = json.loads(collective("plan", "8", *ring8, "-o", "json")[1])
    assert document["light"]["without_light"][0] == [[3, 7]]
    assert (document["light"]["changes"], document["light"]["change_s"]) == (5, 0.025)
    advised = collective("advise", "--ranks", "8", "--bytes", "64MiB", "--bandwidth", "50GB/s", "--gap", "9ms", *ring8)
    assert advised[1].splitlines()[-1] == "do not change light for rounds: ring takes 2.3 ms in all"


@pytest.mark.parametrize(
    ("ranks", "job", "said"),
    [
        ("7", "train-a", "no 7 ranks of train-a are joined by light"),
        ("8", "train-x", "no job 'train-x' in "),
    ],
)
def test_a_job_without_such_light(collective, ranks, job, said):
    code, out, err = collective("plan", ranks, "-i", str(example("rack64")), "--job", job)
    assert (code, out) == (2, "")
    assert said in err
    assert "hint: " in err
