"""Leader election on a Lease, and the Leases of others."""
