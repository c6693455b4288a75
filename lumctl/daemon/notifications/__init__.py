"""Notifications: which messages operators get, whether they have them already, and how each receiver is reached."""
