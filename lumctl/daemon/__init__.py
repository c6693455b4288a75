"""The daemon: looks at fixed times, and hands on what it sees as history, metrics, notifications, and to who asks."""
