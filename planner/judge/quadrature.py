"""Gauss-Legendre quadrature on 0..1, its nodes from numpy."""

from __future__ import annotations

from functools import cache


@cache
def unit_quadrature(points: int) -> tuple[tuple[float, float], ...]:
    """Nodes and weights of Gauss-Legendre on 0..1."""
    from numpy.polynomial.legendre import leggauss

    nodes, weights = leggauss(points)
    return tuple(((node + 1.0) / 2.0, weight / 2.0) for node, weight in zip(nodes, weights, strict=True))
