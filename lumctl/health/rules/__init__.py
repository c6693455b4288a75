"""The rules: for each family of components a module that tests readings, and a YAML file with the verdicts."""
