"""The pretend outside: API server, cloud, kubelets, scheduler and workloads on virtual time, and those who watch over it.

The controllers that run in it are the real ones. It speaks to them only through the doors that the real outside uses.
"""
