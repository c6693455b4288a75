"""Readings over SSH: sessions, probes, parsers. Nothing decides here."""
