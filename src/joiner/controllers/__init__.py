"""Reconcilers: each reads, asks the core, writes, and says when to come back.

They meet in API objects and in `state`. A few call each other, by what `assembly` gives them: evictions, commands of disruption,
outcomes of registrations, triggers of the provisioner, launch retries.
"""
