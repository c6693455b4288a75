"""A simulated torus for all tests of a module; each test leaves it as it was."""

import pytest
from racks import rack_of

from lumctl.change import apply
from lumctl.slices.documents import slices_document
from lumctl.slices.release import plan_release


@pytest.fixture(scope="module")
def rack(tmp_path_factory):
    # Sixteen meshes and 192 receivers answer late on a busy machine.
    patient = rack_of(
        "torus64",
        tmp_path_factory.mktemp("torus64"),
        edited=lambda text: text.replace("    driver: smartlight\n", "    driver: smartlight\n    timeout_s: 60\n"),
        light_deadline_s=30.0,
    )
    yield from patient


@pytest.fixture(autouse=True)
def as_before(rack):
    """Each test leaves the rack as it was: the states of every PUC, and no slice."""
    before = rack.cells()
    yield
    rack.clear()
    for job in [each["job"] for each in slices_document(rack.context)["slices"]]:
        apply(rack.context, plan_release(rack.context, job))
    assert rack.cells() == before
