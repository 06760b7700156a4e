"""Pods in, plan out: which pods go where, and what to buy.

Pure: no client, no clock, no logger. A run mutates only working objects of its own; at the door everything is frozen.
"""
