"""Where a run's nodes read their data from: object storage, local NVMe, volumes or a parallel file system, by cost."""
