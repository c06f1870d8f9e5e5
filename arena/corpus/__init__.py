"""Task folders read strictly into frozen dataclasses."""
