"""Notifications: which messages operators get, which they have already, and how each receiver is reached."""
