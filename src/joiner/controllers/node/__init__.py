"""Controllers of Nodes: termination, eviction, reboot, legacy repair."""
