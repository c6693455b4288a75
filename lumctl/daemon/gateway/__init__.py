"""The gateway of a rack: the only process that owns the sockets of its devices. It writes only for the newest lease.

An engine that was frozen for longer than its lease may wake up in the middle of a step. The journal refuses its next
entry, but an earlier write may still be in transit. The gateway compares that write with the newest lease, and
refuses it.
"""
