"""The dashboard as lines of text, for a screen reader or a pipe: no screen, no drawings."""
