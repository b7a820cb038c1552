"""Questions to the offers: flags, derived prices, overlays, queries."""
