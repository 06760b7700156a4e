"""Buying machines of EC2: user data, launch templates, CreateFleet, and the machines that came of it."""
