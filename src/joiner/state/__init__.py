"""The state of the cluster, built from watch events and our own bookkeeping."""
