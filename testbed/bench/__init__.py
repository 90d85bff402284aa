"""The benchmark: this scheduler, kube-scheduler and a null binder on the same restored worlds.

Each workload is filled into a bed once. Then every contestant in turn gets that very cluster, as
etcd's files held it, and places what waits there. All serve one scheduler name and log in with one
service account, so that the API server treats them alike.
"""
