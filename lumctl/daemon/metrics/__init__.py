"""Prometheus metrics of the rack and of the daemon: collectors, the HTTP endpoint, alert rules and a dashboard."""
