"""Notifications: what operators are told, whether they know it already, and how it reaches each receiver."""
