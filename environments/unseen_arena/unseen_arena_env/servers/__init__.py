"""The tool server."""
