"""Kubernetes' own end-to-end specs for scheduling, once with kube-scheduler, once with ours.

python -m testbed.e2e     (make e2e)

main.go, go.mod   the suite: its sig-scheduling specs as a program of our own
building          compiles it, once; the program is kept in the cache
suite             its command line, and what it says about each spec
stages            what a kubelet does and kwok's own stages do not
column            one scheduler on a bed of its own, all specs
table             both columns side by side, and whether we did as well
"""
