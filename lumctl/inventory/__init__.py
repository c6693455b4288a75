"""The rack as recorded: model, YAML with positions, validation, name folding.

Names are imported from the modules: loading a file needs pydantic, and whoever only needs the model should not wait for
it.
"""
