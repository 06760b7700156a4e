"""Nodes that pods can go to: existing ones, and open claims that are planned but not bought, with the rules of
placement on both.
"""
