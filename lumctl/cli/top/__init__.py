"""``lumctl top``: what connects the dashboard to stores, devices and the swap, each part in a file."""
