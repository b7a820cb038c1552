"""Methods above single solves: incumbent and bound on one clock, Benders, elastic limits, tightening, fronts."""
