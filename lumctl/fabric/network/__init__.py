"""One fabric of several devices joined by fibres: meshes and switches, and circuits that run through all of them."""
