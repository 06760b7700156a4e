"""What is told of a story: its lines as it goes, and the summary at its end."""
