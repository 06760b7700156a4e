"""Workloads of the files as the pods that a cluster would have of them."""
