"""What a stranger ships: the driver of a mesh that is told JSON, and its twin for rehearsals."""
