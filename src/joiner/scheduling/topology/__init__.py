"""Topology groups: spread, affinity and anti-affinity counted by domain."""
