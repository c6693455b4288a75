"""Room for new circuits where there is none beside the live ones: as few as possible are moved, none in the dark."""
