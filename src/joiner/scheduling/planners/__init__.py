"""Ways of planning besides plain first fit. Each is a run of the engine with other choices."""
