"""A proxy between a scheduler and the API server that does what networks and servers do at night.

    scheduler ══TLS══▶ FaultProxy ══TLS══▶ API server
                           │ rules: which fault, for which requests, how often
                           └ journal: every fault and every Binding that came by, with its time

Who builds on whom: faults < (journal, choosing, wire) < answers < relay < server.

It speaks HTTP/1.1 as far as schedulers and the API server do, and passes on what it was not told to
spoil byte for byte. A fault is something that happens to one request or one connection; what makes
it harmless or not is when it strikes, so faults that come *after* the API server has executed the
request are kinds of their own. Nothing here knows anything of scheduling.
"""
