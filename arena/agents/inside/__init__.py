"""Programs that run inside an agent's box, each a file of its own: standard library only."""
