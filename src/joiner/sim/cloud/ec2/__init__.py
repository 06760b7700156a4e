"""The EC2 face of the pretend cloud: AWS calls answered in process, in the shapes that AWS defines, on virtual time."""
