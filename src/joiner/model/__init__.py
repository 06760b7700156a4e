"""The nouns: API objects and their parts as frozen values.

Everyone speaks this room and it imports nobody. Nothing here does I/O, reads a clock or needs more than its own fields.
"""
