"""Which nodes should go, and why. Pure: the picture of the cluster and the time go in, decisions come out."""
