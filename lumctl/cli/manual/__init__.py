"""The manual pages, made from the commands themselves; ``python -m lumctl.cli.manual`` writes them."""
