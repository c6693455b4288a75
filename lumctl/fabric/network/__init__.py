"""One fabric of several devices connected by fibres: meshes and switches, and circuits through several devices."""
