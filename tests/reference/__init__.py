"""Numbers published by others, and slow plain ways to compute what the toolkit computes."""
