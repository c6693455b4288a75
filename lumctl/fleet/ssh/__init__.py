"""Connections to hosts: where they are, who they are, how they let us in, and one kept session for each."""
