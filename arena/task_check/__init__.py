"""`arena tasks check`: check task definitions, cases, kernels and mutants."""
