"""Controls jobs of the scheduler of Example & Co. (made up: it shows what a kind of job control looks like)."""

from lumctl_example_job.job import ExampleJob

__all__ = ["ExampleJob"]
