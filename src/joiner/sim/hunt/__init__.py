"""Random worlds with injected faults, and checkers that look at every write."""
