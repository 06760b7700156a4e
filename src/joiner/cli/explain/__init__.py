"""`joiner explain`: why a node goes or stays, and what an edit of a NodePool will have replaced."""
