"""Programs that run inside an agent's box, each a file of its own that needs the standard library alone to load."""
