"""Parse the output of a host's tools into readings: pure functions that never raise and skip unreadable parts."""
