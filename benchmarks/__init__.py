"""Benchmarks: one file per question. `python -m benchmarks [NAME …]` runs them and keeps the numbers as data."""
