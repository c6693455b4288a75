"""From one configuration to another: what changes in which order, what it costs, and the best round through many."""
