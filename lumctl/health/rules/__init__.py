"""The rules: one module of tests for each family of components, one YAML file of verdicts beside it."""
