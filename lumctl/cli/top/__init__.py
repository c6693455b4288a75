"""``lumctl top``: connects the dashboard to stores, devices and the swap; each part is a file."""
