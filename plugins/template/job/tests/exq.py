"""A twin of the scheduler's program: ``exq.py FILE VERB ID [HOSTS]``, with one job whose state lies in a JSON file."""

import json
import sys
from pathlib import Path

file, verb, job, *hosts = sys.argv[1:]
state = json.loads(Path(file).read_text())
if job != "42":
    sys.exit(f"no job {job}")
if verb not in {"show", "where"}:
    if state["refuses"]:
        sys.exit("the queue is frozen")
    state |= {"is": "held"} if verb == "hold" else {"is": "running", "hosts": hosts[0].split(",")}
    Path(file).write_text(json.dumps(state))
print(",".join(state["hosts"]) if verb == "where" else state["is"])  # noqa: T201 - it is a program
