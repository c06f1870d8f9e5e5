"""Adapters: thin clients of `arena serve` for other ecosystems, and a run's results in their formats.

A module that needs a foreign package imports it at its top, so import such a module only where it is used.
"""
