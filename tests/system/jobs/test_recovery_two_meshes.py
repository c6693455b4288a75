"""A job whose ring lies in two meshes: both ranks at one mesh are lost, and one goes on from a spare at the other."""

import pytest
from job_coordinator import JOB
from running_jobs import RunningJob

pytestmark = pytest.mark.timeout(300)


def test_a_lost_rank_goes_on_from_a_spare_at_the_other_mesh() -> None:
    with RunningJob("two-meshes") as job:
        mesh_of = {each.accelerator: each.lane.device for each in job.inventory.transponders.values()}
        job.run()
        job.at_work()
        replaced = {}
        for times, lost in enumerate(("h3-gpu0", "h4-gpu0"), start=1):
            job.lose(lost)
            replaced |= job.recovered(times)["replaced_by"]
            job.steps(5)
        assert sorted(replaced) == ["h3-gpu0", "h4-gpu0"]
        assert sorted(mesh_of[spare] for spare in replaced.values()) == ["m0", "m1"]
        with job.context() as context:
            assert all(str(c.state) == "ok" for c in context.observe().report.circuits.values() if c.owner == JOB)
        assert job.steps_missing() == set()
        job.stop()
