"""The command line: one thin module per noun, loaded only when its noun is typed."""
