"""Whether a law would have foreseen its own runs: held-out errors, comparison, residuals."""
