"""Controllers of NodePools: readiness, counted resources, registration health, static capacity."""
