"""Tests of `arena.integrations.importers`, on problems that are written for them."""
