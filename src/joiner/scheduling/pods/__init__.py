"""Pods before they are placed: which are eligible, classes of identical pods, their preferences, volumes and default
spread.
"""
