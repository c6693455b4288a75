"""The contract of kinds of job control as a test suite: subclass ``JobContract`` and override its fixture ``job``.

:func:`bench_context` makes the context for a control; programs of that context really run, on this machine. The
template for ``job`` shows both; see lumctl-job-plugin(7).
"""

import pytest

pytest.register_assert_rewrite("lumctl.jobs.testing.contract")

from lumctl.jobs.testing.contract import JobContract, JobUnderTest, bench_context, ranks  # noqa: E402 - after its asserts were registered

__all__ = ["JobContract", "JobUnderTest", "bench_context", "ranks"]
