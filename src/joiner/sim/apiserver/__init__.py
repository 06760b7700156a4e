"""The simulated Kubernetes API server: storage, watches, admission, patches, owner garbage collection,
PodDisruptionBudgets.
"""
