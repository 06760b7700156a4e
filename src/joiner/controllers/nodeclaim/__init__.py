"""Controllers of NodeClaims: life cycle, conditions, expiration, garbage collection, consistency."""
