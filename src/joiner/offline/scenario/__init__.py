"""Scheduling scenarios as JSON, the format of the differential tests: reader and answer."""
