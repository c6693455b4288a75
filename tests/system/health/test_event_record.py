"""A fault's line in a simulated kernel log: pushed out of the ring, followed by a reset, or gone with a boot."""

from lumctl.health.states import State

GPU, OTHER, HOST = "n1-gpu0", "n1-gpu1", "n1"


def xid(virtual, number=64):
    """The finding of an XID of the GPU, if there is one."""
    findings = virtual.report.accelerators[GPU].findings
    return next((f for f in findings if f.rule == "gpu.xid" and f.about == str(number)), None)


def fill_ring(virtual):
    """Let another GPU write until the ring has no older line."""
    while " 64, " in virtual.world.kernel_log(HOST, iso=False):
        for _ in range(256):
            virtual.world.inject(OTHER, "ecc")


def test_a_line_that_was_pushed_out_of_the_ring_still_counts(virtual):
    virtual.world.inject(GPU, "row-remap-failed")
    virtual.tick()
    assert "no longer" not in xid(virtual).evidence
    fill_ring(virtual)
    virtual.tick()
    assert xid(virtual).state is State.FAILED
    assert xid(virtual).evidence.endswith("; the line is no longer in the kernel log")
    virtual.tick(40 * 86_400.0)
    assert xid(virtual).state is State.FAILED
    virtual.world.clear(GPU)
    virtual.tick()
    assert virtual.report.accelerators[GPU].state is State.OK


def test_a_gpu_that_was_reset_is_ok_though_its_lines_are_in_the_ring(virtual):
    virtual.world.inject(GPU, "row-remap-failed")
    virtual.tick()
    virtual.world.clear(GPU)
    virtual.tick()
    assert " 64, " in virtual.world.kernel_log(HOST, iso=False)
    assert virtual.report.accelerators[GPU].state is State.OK


def test_a_gpu_that_was_lost_is_ok_when_its_host_was_booted(virtual):
    virtual.world.inject(GPU, "gpu-lost")
    virtual.tick()
    assert xid(virtual, 79).state is State.FAILED
    virtual.world.clear(GPU)
    virtual.tick()
    assert virtual.report.accelerators[GPU].state is State.OK
    assert virtual.memory.document()["events"] == {}
