import os
from pathlib import Path

import pytest

from lumctl.fleet.probe_output import Gathered, ProbeAnswer
from lumctl.fleet.probes import probes_for

ANSWERS = Path(__file__).parent / "answers"
REPOSITORY = Path(__file__).resolve().parents[3]
CAPTURES = Path(os.environ.get("LUMCTL_CAPTURES", REPOSITORY.parent / "shared" / "captures"))


@pytest.fixture(scope="session")
def answer():
    """What a host printed, by file name."""
    return lambda name: (ANSWERS / name).read_text()


@pytest.fixture
def take():
    """Let a probe take an answer; what was gathered before may be given."""
    probes = {probe.name: probe for probe in probes_for(("eth2",), sudo=False)}

    def take(name, text="", *, status=0, appended=False, gathered=None, at=9.0):
        gathered = gathered or Gathered()
        return *probes[name].take(ProbeAnswer(status, text, appended=appended), at, gathered), gathered

    return take


@pytest.fixture(scope="session")
def captures_at_hand():
    """Outputs of real hardware; none where they are not at hand."""
    return sorted(path for path in CAPTURES.iterdir() if path.suffix != ".md") if CAPTURES.is_dir() else []
