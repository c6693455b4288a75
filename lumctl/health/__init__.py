"""Readings -> findings -> states. Rules are data files."""
