"""`python -m joiner` is `joiner`."""

from joiner.cli.main import main

main()
