"""A mesh as an all-to-all switch: matchings in which every pair of ports meets once."""
