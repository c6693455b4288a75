"""The screens: one file for each kind of thing that can be looked at."""
