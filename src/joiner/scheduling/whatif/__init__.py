"""Questions that are answered by planning again: what keeps a pod out, what a preference costs, what else could be
bought.
"""
