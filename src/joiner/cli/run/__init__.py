"""`joiner run`: the controllers as a process on a cluster."""
