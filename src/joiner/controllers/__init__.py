"""Reconcilers: each reads, asks the core, writes, and says when to come back. They meet only in API objects and in `state`."""
