"""What a NodePool can buy: raw types, then settings, then overlays, then an index.

A pure function of its inputs. Fetching, caching and time belong to `joiner.cloud`.
"""
