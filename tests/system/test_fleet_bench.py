"""The measurement against peers, on two hosts: that it runs, and that no contender gets away with a wrong answer."""

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench" / "fleet"
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def bench(require_program, monkeypatch):
    """Its modules import each other by plain names, as its own entry point does."""
    require_program("sshd")
    require_program("ssh-keygen")
    monkeypatch.syspath_prepend(str(BENCH))


@pytest.fixture
def rack():
    from rack import Rack, addresses

    with Rack(addresses(2)) as rack:
        yield rack


def contender(rack, tmp_path, answers):
    from driver import Contender
    from roster import Entry

    script = tmp_path / "contender_here.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(BENCH)!r})
        from pathlib import Path
        from contender import serve

        class Here:
            def __init__(self, settings):
                self.settings = settings
                self.first = Path(settings["payload"]).read_bytes()
            def tick(self):
                pass
            def answers(self):
                now = Path(self.settings["payload"]).read_bytes()
                return {answers}
            def close(self):
                pass

        serve(Here)
        """)
    )
    return Contender(Entry("here", str(script), "a contender of this test"), rack, sys.executable)


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        ("dict.fromkeys(self.settings['hosts'], now)", None),
        ("dict.fromkeys(self.settings['hosts'], self.first)", "2 a wrong one"),
        ("dict.fromkeys(self.settings['hosts'], now[:-2])", "2 a wrong one"),
        ("{self.settings['hosts'][0]: now}", "1 gave no answer"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_every_byte_of_every_host_is_asked_for(rack, tmp_path, answers, complaint):
    import payload
    from driver import ContenderError

    payload.put(rack.payload, payload.fresh(4096))
    one = contender(rack, tmp_path, answers)
    try:
        digest = payload.put(rack.payload, payload.fresh(4096))
        one.tick()
        if complaint is None:
            one.check(digest)
        else:
            with pytest.raises(ContenderError, match=complaint):
                one.check(digest)
    finally:
        one.close()


@pytest.mark.parametrize("good_ticks", [0, 6], ids=["compared", "straight from the tool"])
def test_a_tool_that_fails_fails_our_contender(rack, good_ticks):
    import payload
    from driver import Contender, ContenderError
    from roster import ROSTER

    fails, tool = rack.folder / "fails", rack.folder / "tool.sh"
    tool.write_text(f"cat {rack.payload}\n[ ! -e {fails} ] || exit 3\n")
    payload.put(rack.payload, payload.fresh(4096))
    ours = Contender(ROSTER[0], rack, sys.executable, settings={"command": f"sh {tool}"})
    try:
        for _ in range(good_ticks):
            digest = payload.put(rack.payload, payload.fresh(4096))
            ours.tick()
            ours.check(digest)
        fails.touch()
        digest = payload.put(rack.payload, payload.fresh(4096))
        ours.tick()
        with pytest.raises(ContenderError, match="2 gave no answer"):
            ours.check(digest)
    finally:
        ours.close()


def test_cpu_counts_what_descendants_use_and_have_used():
    import processes

    busy = "import time\nwhile time.process_time() < 0.3: pass"
    parent = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {busy!r}])\nprint('ended', flush=True)\ninput()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 30
        while processes.cpu_s(process.pid) < 0.15 and time.monotonic() < deadline:
            time.sleep(0.01)
        alive_s = processes.cpu_s(process.pid)
        assert process.stdout.readline() == "ended\n"
        ended_s = processes.cpu_s(process.pid)
        process.stdin.close()
    assert 0.15 <= alive_s <= ended_s
    assert ended_s >= 0.28


def test_a_whole_run(tmp_path):
    found = tmp_path / "ticks.json"
    arguments = ["ticks", "--hosts", "2", "--rounds", "1", "--only", "lumctl", "--json", str(found)]
    done = subprocess.run(
        [sys.executable, str(BENCH / "run.py"), *arguments], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    (measured,) = json.loads(found.read_text())["contenders"]
    assert measured["wall_s"] > 0
    assert measured["client_cpu_s"] > 0
    assert measured["server_cpu_s"] > 0
    assert len(measured["ticks"]) == 5
