"""The command line: a file or package for each command, thin; it parses, calls the rooms below, and draws what they answer.

Every command module has a click command named `command` and is imported only when it is called. `inputs` and `output` hold
what `-f/--filename` and `-o/--output` mean everywhere.
"""
