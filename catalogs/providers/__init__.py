"""One module per source of offers."""
