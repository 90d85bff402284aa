"""`make chaos`: everything at once on a real control plane, and an auditor who believes nobody.

    plan (seed) ─▶ run ─▶ stage: bed, nodes, two replicas behind proxies, kube-scheduler
                    │       ▲ traffic: pods come and go        ▲ actions: kill, freeze, restart, ...
                    │       └ history: a watch from the beginning, audit log, journal, samples
                    └─▶ evidence ─▶ auditor ─▶ report, exit code

Who builds on whom: plan; resources < evidence < the checks (`judging_*`) < auditor; (history,
samples, traffic) < stage < actions < run < cli. The auditor and its checks are arithmetic of their
own on what the API server said: they import nothing of `k8s_scheduler`. A run leaves a folder with
all evidence as files, and the auditor can be asked again: `python -m testbed.chaos --audit FOLDER`.
"""
