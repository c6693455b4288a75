"""The coordinator of a job: its state, and the functions that act on it.

``state`` is all that is known. What happens comes in by ``agent_reports``, ``repair`` (the healer) and ``requests``;
``failures``, ``groups``, ``takeover``, ``time_limits`` and ``job_end`` decide what follows; ``orders`` sends it.
"""
