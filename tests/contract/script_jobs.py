"""Jobs of ``tests/system/jobs/scripts/digits.py``, a script as users write them, on two ranks and a spare."""

import json
import sys
from pathlib import Path

from running_jobs import RunningJob
from small_rack import of_two_ranks

SCRIPT = Path(__file__).parents[1] / "system" / "jobs" / "scripts" / "digits.py"
RANKS = 2


class ScriptJob(RunningJob):
    """The script on two ranks and a spare; ``out`` is where it writes."""

    def __init__(self, out: Path, *options: object, **run: object) -> None:
        self.out = out
        command = [sys.executable, str(SCRIPT), "--out", str(out), *map(str, options)]
        super().__init__(command=command, edited=of_two_ranks, **run)

    def ends(self, code: int) -> dict:
        """Run the job to its end, which is to be with this exit code; how it stands then."""
        self.run()
        return self.ended(code)

    def ended(self, code: int) -> dict:
        assert self.coordinator.ended() == code, "\n".join(self.coordinator.said)
        self.all_gone()
        return json.loads(self.lumctl("job", "status", "train", "-o", "json"))

    def last_lines(self) -> int:
        """How many ranks have run the last line of the script."""
        return len(list(self.out.glob("last-line-of-rank-*")))


def done_by_all(job: ScriptJob, found: dict) -> None:
    assert (found["state"], found["end"], found["script_error"]) == ("ended", "done", None)
    assert job.last_lines() == RANKS
    assert (job.out / "model.pt").stat().st_size > 0
