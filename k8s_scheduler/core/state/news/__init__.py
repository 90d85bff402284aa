"""What changed, in order: the logs from which parked pods and kept evaluations catch up."""
