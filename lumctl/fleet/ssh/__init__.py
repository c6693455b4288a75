"""SSH connections to hosts: their routes, host keys and logins, and one session per host that is kept open."""
