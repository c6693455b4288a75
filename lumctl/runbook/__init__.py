"""How to do it again: runbooks made from the journal, read, edited, and replayed through lumctl.change."""
