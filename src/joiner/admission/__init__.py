"""Which objects may enter: the schema and rules of our kinds, for an API server as CRDs and offline as a judge.

Both are made from the constraints written beside the fields of the model. Nothing here reads files or calls a server.
"""
