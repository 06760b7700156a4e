"""`joiner simulate`: stories and hunts."""
