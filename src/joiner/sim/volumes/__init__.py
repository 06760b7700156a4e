"""Simulated volume controllers: ephemeral claims, provisioner, attach/detach."""
