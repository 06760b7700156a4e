"""A small controller runtime: the port to the Kubernetes API, caches, work queues and the manager.

It knows no domain noun: objects are known by the group, version and kind of their class. Any implementation of `client.Client`,
over HTTP or as a pretend server, can stand behind it.
"""
