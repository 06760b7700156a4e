"""What there is: the mirror of the cluster, folded from watch events and our own bookkeeping. The one big mutable thing."""
