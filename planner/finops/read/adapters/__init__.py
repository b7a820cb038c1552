"""The clouds' own exports as FOCUS columns: one data file per export, read by one piece of code.

A file has rows of these parts: `about` (title, FOCUS version), `detect` (columns that tell the export), `input`
(columns it may have, their kind and other spellings), `let` (expressions that are used in several places as
`{name}`), `column` (FOCUS column and its expression over the inputs), `map`
(values of an input and what `{map:input}` makes of them), `split` (rows that stand for two charges), `kind` (tests over
a whole file, the first true one names `cost_kind`), `replaced_by` (rows to leave out where a file of another kind has
the month), `alone` (what a file of this kind lacks by itself) and `check` (a sum that must be 0).
"""

from planner.finops.read.adapters.adapter import Adapter, detect_adapter, load_adapters

__all__ = ["Adapter", "detect_adapter", "load_adapters"]
