"""What a budget buys: FLOPs, isoFLOP and envelope fits, allocation under constraints."""
