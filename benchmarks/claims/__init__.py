"""The ledger of published claims on training and its cost, each with our number, its command and a verdict."""
