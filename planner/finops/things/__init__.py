"""Everything bought in two months, summed once inside the engine and asked there: a bill may have a million SKUs."""
