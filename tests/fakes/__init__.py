"""Loopback servers that answer like the clouds, and break like them."""
