"""A job that survives failures.

``coordinator`` decides; an ``agent`` on each host starts and watches the workers; ``torch`` is what their scripts
import; ``example`` is such a script. ``healer`` has accelerators replaced, and ``job_run`` puts all of it together.
"""
