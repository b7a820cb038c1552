"""Reading bills: FOCUS 1.0 to 1.4 and the clouds' own exports, as one view `focus`."""

from planner.finops.read.model import Bill, Finding, Source
from planner.finops.read.open import open_bill

__all__ = ["Bill", "Finding", "Source", "open_bill"]
