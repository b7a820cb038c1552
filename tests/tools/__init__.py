"""Tests of the tools that developers run."""
