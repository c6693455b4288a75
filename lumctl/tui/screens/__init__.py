"""The screens: one file for each kind of subject."""
