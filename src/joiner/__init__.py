"""Joiner: a just-in-time node provisioner for Kubernetes that plans, simulates and explains."""

__version__ = "0.1.0.dev0"
