"""The runner's side of an agent's work: turns at the device, `./evaluate`, workspaces, episodes."""
