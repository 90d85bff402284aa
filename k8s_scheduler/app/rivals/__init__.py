"""Other processes that serve a schedulerName of this one under another Lease."""
