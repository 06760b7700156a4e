"""Manifests and scenarios in, Problems and catalogues out: what every command that works on files shares. It prints
nothing.
"""
