"""A lower bound on the price of any plan: an LP relaxation, dual prices for it, and enumeration for a few pods."""
