"""How we speak: metrics and events, each defined once. Never logic."""
