"""What every sshd of the tests is told: it is a program of the test's own, and lets in by keys only."""

BY_KEYS_ONLY = """PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
"""
