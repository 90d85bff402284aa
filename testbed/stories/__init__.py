"""Stories told to two schedulers at once: what holds a pod back, and how that changes.

Each pod of a story exists twice, once for kube-scheduler and once for this scheduler, on the same
API server and before the same nodes. After every step both are to say the same, this scheduler at
most two seconds after kube-scheduler.
"""
