"""Runbooks: recorded runs as files, made from the journal, to be read, edited, and replayed through lumctl.change."""
