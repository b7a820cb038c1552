"""What a unit of AI work costs, as far as the bill itself counts it: tokens, requests, images, GPU-hours."""
