"""Who computes many independent tasks: this process, others of this machine, Dask or Ray; and how a run goes on."""
