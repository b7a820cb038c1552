"""What an offer costs this job: prices, billing rules, storage, transfer, quotas. Catalog and tariffs come in."""
