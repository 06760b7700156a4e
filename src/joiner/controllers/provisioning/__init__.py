"""Pending pods to NodeClaims: batching, the plan, writing claims, back-off after failed launches, buffers."""
