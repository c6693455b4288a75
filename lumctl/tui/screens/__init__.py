"""The screens of the dashboard, one file for each kind of subject."""
