"""Which objects an API server accepts: the schema and rules of our kinds, as CRDs and as offline validation.

Both are made from the constraints written beside the fields of the model. Nothing here reads files or calls a server.
"""
