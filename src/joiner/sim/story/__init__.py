"""Stories: the YAML format, its validation, and the player that runs the steps and checks what must be true."""
