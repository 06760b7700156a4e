"""NodeOverlays and InstanceType settings: their status, and what they change in catalogues."""
