"""A job that survives failures.

``coordinator`` decides. An ``agent`` on each host starts and watches the workers. Their scripts import ``torch``;
``example`` is such a script. ``healer`` replaces failed accelerators, and ``job_run`` combines these parts.
"""
