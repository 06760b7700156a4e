"""`joiner consolidate`: what consolidation would do to a cluster, and why nodes are still there."""
