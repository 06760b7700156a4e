"""API objects and their parts as frozen values.

All packages use this one and it imports none of them. Nothing here does I/O, reads a clock or needs more than its own fields.
"""
