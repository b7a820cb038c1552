"""A solve that keeps its deadline: stages, threads and child processes around a backend."""
