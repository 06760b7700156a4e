"""A provider for machines of your own."""
