"""First fit over a prepared problem, and what every planner shares: prices of open claims, domains of affinity groups,
retries of pods pinned by their volumes.
"""
