"""The test bed: a real Kubernetes control plane as plain processes on loopback.

It exists so that integration tests, the demo and the benchmark meet the real API server instead
of an imitation, on any machine with Python and a network: no container, no root, no kubectl.

    python -m testbed build     compile the control plane and kwok once (cached outside the tree)
    python -m testbed up        start a bed that outlives the command
    python -m testbed status    what runs, on which port, how healthy
    python -m testbed down      stop it and remove every file of it

Who builds on whom, left to right (nothing imports back):

    errors < processes < registry < guardian
    errors < (versions, cache, golang, compiling) < build < binaries < options
    options < (layout, pki, kubeconfig, commands, kwok, audit) < provision
    (client, health, component, crew, provision, teardown) < bed < (sandbox, status, cli, bench)
    (bed, installation) < proxy < chaos

The bed knows the scheduler only from outside: nothing here imports more of `k8s_scheduler` than
its public API, but `bench`, whose null binder is made of the daemon's own parts and whose judge of
placements is the core. Importing this package must stay cheap; the guardian process does it.
"""
