"""Consolidation: which nodes to remove or to replace by cheaper ones, and when that pays.

A linear programme gives a target for the whole cluster: what to keep, what to buy. Moves that fit the budgets lead towards it,
each checked by the planner that plans for pending pods, and each must pay back what it disturbs.
"""
