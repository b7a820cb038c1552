"""One module per kind of file: `recognises(document)` and `read(document)`; the registry names them."""
