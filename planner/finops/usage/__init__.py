"""What accelerators did, from the tools that watched them, beside what the bill says was paid."""

from planner.finops.usage.model import Usage
from planner.finops.usage.read import load_usage

__all__ = ["Usage", "load_usage"]
