"""Which actions were accepted, and what they have saved since, against a stated counterfactual."""

from planner.finops.ledger.book import Book, Entry, open_book

__all__ = ["Book", "Entry", "open_book"]
