"""Tests of `arena.importers`, on problems that are written for them."""
