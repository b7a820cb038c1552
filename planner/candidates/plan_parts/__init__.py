"""A candidate as parts of a plan: cost lines, time line, risk, launch, warnings, and what to relax where none fits."""
