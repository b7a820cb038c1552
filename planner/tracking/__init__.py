"""How a running job is doing against its plan: read from its log or its metrics, forecast, and explained when slow."""
