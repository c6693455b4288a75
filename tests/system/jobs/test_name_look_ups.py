"""A group is formed without asking a name server, which may have failed together with what the job lost."""

import os
import subprocess
import sys

import pytest

FORM = """
import torch
import torch.distributed as dist

from lumctl.training.torch.group import JoinOrder, ProcessGroup

group = ProcessGroup(torch.device("cpu"), "127.0.0.1", "token")
group.make(JoinOrder(1, 0, 1, group.store), wanted=lambda: True)
dist.all_reduce(torch.zeros(1))
dist.new_group([0])
group.close()
"""


def test_no_name_server_is_asked(require_program, tmp_path):
    program, trace = require_program("strace"), tmp_path / "trace"
    tried = subprocess.run([program, "-f", "-o", trace, "true"], check=False, capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"the kernel lets nobody trace: {tried.stderr.strip()}")
    command = [program, "-f", "-e", "trace=connect", "-o", trace, sys.executable, "-c", FORM]
    subprocess.run(command, check=True, timeout=120, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    calls = trace.read_text().splitlines()
    assert any("127.0.0.1" in call for call in calls), "the store was reached"
    assert [call for call in calls if "htons(53)" in call] == []
