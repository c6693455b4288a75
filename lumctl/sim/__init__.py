"""A rack of any inventory on loopback: real network services, and behind them one world in which light is traced."""
