"""The KWOK provider: nodes without machines. The reference provider, and the playground for every feature."""
