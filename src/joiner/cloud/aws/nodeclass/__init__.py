"""EC2NodeClass: the object, its hash, what is wrong with one, and what its selectors mean in an account."""
