"""The public Python API: what `import planner` offers, each function with plain keyword arguments and defaults.

    import planner

    plan = planner.optimize("workload.yaml")
    plan.total_usd, plan.to_frame(), plan.save("plan.json")

Every function takes a path or what `planner.load` returned, and returns an answer that can be printed, shown in a
notebook, turned into a DataFrame or plain values, rendered in any format of `-o` and saved. What its user can mend is a
`planner.PlannerError` with the message that the command prints. Relative paths in a file count from its folder.
"""
