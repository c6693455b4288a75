"""The contract of kinds of job control as a test suite: subclass ``JobContract`` and override its fixture ``job``.

:func:`bench_context` gives what a control is made from; its programs really run, on this machine. The template for
``job`` shows both, see lumctl-job-plugin(7).
"""

import pytest

pytest.register_assert_rewrite("lumctl.jobs.testing.contract")

from lumctl.jobs.testing.contract import JobContract, JobUnderTest, bench_context, ranks  # noqa: E402 - after its asserts were registered  # noqa: E402

__all__ = ["JobContract", "JobUnderTest", "bench_context", "ranks"]
