"""What may be done unasked: policies, the decisions by them, and the switch that stops it all."""
