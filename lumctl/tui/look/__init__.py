"""How things look: marks, styles, themes, moments."""
