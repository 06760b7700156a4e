"""The document of a story: its YAML format with the bounds of its numbers, and the manifests beside it."""
