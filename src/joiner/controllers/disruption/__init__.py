"""Nodes that are taken away or replaced: the command queue, and repair of broken nodes."""
