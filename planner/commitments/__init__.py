"""Which commitments to buy for a demand that is not known: history, futures, prices, the answer and its proof."""
