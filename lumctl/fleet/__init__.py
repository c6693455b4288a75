"""Readings over SSH: sessions, probes, parsers. No decisions are made here."""
