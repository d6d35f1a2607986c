"""The toolkit against other ways to do the same work: ``python -m benchmarks``."""
