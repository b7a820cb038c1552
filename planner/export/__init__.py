"""What starts a saved plan on real machines: launch files for schedulers, orchestrators and training frameworks.

A target turns the one typed view of a plan (`view.Launch`) into files; it reads no catalog price and no workload file.
"""
