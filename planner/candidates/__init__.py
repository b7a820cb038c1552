"""Every way to run one job, timed, priced and filtered: the one engine that every question asks."""
