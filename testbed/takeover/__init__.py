"""How long a cluster is without a scheduler: take-overs and outages, measured."""
