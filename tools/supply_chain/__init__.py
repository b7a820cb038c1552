"""What the project is made of and whether it may be trusted: dependencies, licences, known faults, materials."""
