"""The simulated kube-scheduler: queue, predicates, scores, preemption. It shares no code with the planner."""
