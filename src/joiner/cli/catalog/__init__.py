"""`joiner catalog`: what NodePools can buy."""
