"""Run by an interpreter that has ortools: one integer model as JSON in, CP-SAT's answer as JSON out.

A program of its own, because ortools shares no process with highspy and pins another protobuf than the cloud SDKs use.
It imports nothing of this project, and sees whole numbers only: nothing is rounded anywhere.
"""

from __future__ import annotations

import json
import sys

from ortools.sat.python import cp_model  # type: ignore[import-not-found,import-untyped,unused-ignore]

WORDS = {cp_model.OPTIMAL: "optimal", cp_model.INFEASIBLE: "infeasible"}


def main() -> None:
    made = []
    for content in json.load(sys.stdin):
        model = cp_model.CpModel()
        columns = [model.new_int_var(low, high, "") for low, high in content["bounds"]]
        for low, high, terms in content["rows"]:
            expression = sum(factor * columns[column] for column, factor in terms)
            if low is not None:
                model.add(expression >= low)
            if high is not None:
                model.add(expression <= high)
        model.minimize(sum(cost * column for cost, column in zip(content["cost"], columns, strict=True)))
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds, solver.parameters.num_workers = 60.0, 1
        status = solver.solve(model)
        word = WORDS.get(status, "unknown")
        made.append([word, round(solver.objective_value) if word == "optimal" else None])
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main()
