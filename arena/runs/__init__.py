"""Run configurations, the runner, and run folders on disk."""
