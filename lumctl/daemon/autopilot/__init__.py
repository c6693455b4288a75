"""The autopilot: policies, decisions, swaps without an operator, and the switch that stops these swaps."""
