"""The coordinator of a job: its state, and the functions that act on it.

``state``, ``workers`` and ``host_lines`` hold all data. Events come in through ``agent_reports``, ``failures`` (from
the healer) and ``requests``. ``failures``, ``groups``, ``time_limits`` and ``job_end`` decide; ``orders`` sends orders.
"""
