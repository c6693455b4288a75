"""The description of the racks: model, YAML with positions, validation, name folding.

Names are imported from the modules: loading a file needs pydantic, and importing only the model should not.
"""
