"""When memory can't be trusted: comparisons, a new core, a restored etcd, marked pods."""
