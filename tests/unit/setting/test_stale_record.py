"""A record from when the device of that name was of another kind."""

from lumctl.store import Record


def test_what_a_mesh_of_that_name_held_is_no_state_of_the_switch(rack):
    assert rack.context.known_cells("ocs")[0] == "21"
    lease = rack.store.leases.acquire("switched", "me", term_s=30.0, now=1000.0)
    rack.store.runs.conclude(
        lease, "fabric-0001", Record(1000.0, "outcome", "2", {}), states={"ocs": {n: "=x"[n % 2] for n in range(8)}}
    )
    rack.store.leases.release(lease)
    assert rack.context.known_cells("ocs") == {}
