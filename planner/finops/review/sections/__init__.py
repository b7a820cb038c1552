"""The sections of a review, one question each; `planner.finops.review.answer` puts them in order."""
