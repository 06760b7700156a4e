"""Programs that run by themselves, so that their memory can be told."""

import subprocess
import sys
import tempfile
from typing import Final

_BETWEEN: Final = """
import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A program counts as having used at least what its parent did, so it is started by a process that has next to nothing."""


def apart(command: list[str], asked: bytes = b"") -> tuple[bytes, int]:
    """What a program says to what it is asked, and how many megabytes it had in use at the most."""
    with tempfile.TemporaryFile() as question, tempfile.TemporaryFile() as said:
        question.write(asked)
        question.seek(0)
        between = [sys.executable, "-I", "-S", "-c", _BETWEEN, *command]
        done = subprocess.run(between, stdin=question, stdout=said, stderr=subprocess.PIPE, check=True)
        said.seek(0)
        return said.read(), int(done.stderr.split()[-1]) // 1024
