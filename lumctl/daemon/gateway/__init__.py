"""The gateway of a rack: the one process that owns the sockets of its devices and writes for the newest lease only.

An engine that was frozen for longer than its lease may wake up in the middle of a step. The journal refuses its next
entry, but the write before that is already on its way. The gateway compares it with the newest lease and refuses it.
"""
