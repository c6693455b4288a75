"""The daemon: reads the rack at fixed intervals and feeds history, metrics, notifications, autopilot and clients."""
