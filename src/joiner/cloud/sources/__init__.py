"""Where instance types come from when no cloud is asked: the bundled EC2 catalogue, the generated set, a user's own file.

Everything here is a pure function of facts, apart from reading the two files. Nothing is fetched, nothing waits.
"""
