"""The description of the racks: model, YAML with positions, validation, name folding.

Import names from the modules, not from here: loading a file needs pydantic, but importing the model alone should not.
"""
