"""Which pod is tried next, and which parked pods an event wakes.

`scheduling_queue` draws the moves of a pending pod between the places; `places` holds it in one:

    active       namespace_heaps (a heap for each namespace; giving_way)
    backoff      heap, twice: rejected pods and errors; how long, says backoff
    parked       parked: by spec (parked_spec), in groups that plugins judge alike (parked_group),
                 in these by what preemption reads (peers); some stand in a line (line)
    gated        nowhere: the pod itself says why
    quarantine   quarantine, on top of active or backoff

`waking` takes what changed in the cluster to the parked pods:

    changes ─▶ watchlist: which groups it may concern ─▶ helpful_changes: what of it may help
                     ▲                                            │
                 interest: which pods plugins counted             ▼
                                                 group_judge: would a row take the pods now?
                                                   (prices: what that costs) ─▶ wake
"""
