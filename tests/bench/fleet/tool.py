"""What starting a host's tool costs on this machine, which every contender's tick has in it."""

import resource
import subprocess
import tempfile
from pathlib import Path

import payload

_TIMES = 500


def start_s(size: int) -> float:
    """CPU seconds of one ``cat`` of so many bytes: the mean of many, one after the other, in a plain shell."""
    with tempfile.TemporaryDirectory(prefix="lumctl-bench-") as folder:
        path = Path(folder) / "payload"
        payload.put(path, payload.fresh(size))
        before_s = _children_s()
        loop = f'n=0; while [ $n -lt {_TIMES} ]; do cat "$0"; n=$((n + 1)); done'
        subprocess.run(["sh", "-c", loop, path], stdout=subprocess.DEVNULL, check=True)
        return (_children_s() - before_s) / _TIMES


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
