"""One synchronous job: which cluster, bought how and where, with its plan, explanation and frontier."""
