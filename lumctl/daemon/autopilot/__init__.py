"""The autopilot: policies, the decisions they lead to, swaps without an operator, and the switch that stops them."""
