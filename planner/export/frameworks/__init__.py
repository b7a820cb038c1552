"""One module a training framework: the plan's parallel layout as its own flags, and the layout read back from them."""
