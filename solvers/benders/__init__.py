"""Two-stage programs by Benders' decomposition: the program, its master, and the search; knows nothing of clouds."""
