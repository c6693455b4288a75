"""The dashboard in plain lines, for a screen reader or a pipe: nothing moves, nothing is drawn, all is in words."""
