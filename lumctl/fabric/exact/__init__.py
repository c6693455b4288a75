"""The best routes for circuits, or the proof that there are none, by an integer program. Needs ``lumctl[optimal]``."""
