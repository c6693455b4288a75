"""The coordinator of a job: its state, and the functions that act on it.

``state`` holds all data, with ``workers`` and ``host_lines``. Events come in through ``agent_reports``, ``failures``
(the healer) and ``requests``; ``failures``, ``groups``, ``time_limits`` and ``job_end`` decide what follows; ``orders``
sends it.
"""
