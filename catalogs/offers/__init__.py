"""What can be bought: queries, flags, derived prices, and what a user brings: overlays and machines of their own."""
