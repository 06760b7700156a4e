"""A finished run as values for people: planned claims, refusals and their reasons, preferences that were dropped."""
