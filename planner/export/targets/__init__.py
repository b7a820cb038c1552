"""One module a target of `planner export`: `render` turns a launch into files. `registry.py` names them."""
