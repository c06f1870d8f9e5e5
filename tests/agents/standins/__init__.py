"""Stand-ins for the model APIs of providers, on the loopback address: they follow a script instead of a model."""
