"""Simulate the rack of an inventory: real network services on loopback, all backed by one world that traces light."""
