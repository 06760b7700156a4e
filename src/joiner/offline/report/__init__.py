"""What a plan, its pods and a consolidation come to, as frozen values that tables and JSON are made of."""
