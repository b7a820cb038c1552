"""Many jobs at once: candidates, shared limits, proof, and what gives way when not everything fits."""
