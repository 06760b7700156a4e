"""What the author of a provider tests it with: the contract that every provider keeps, as a suite for pytest.

See docs/guide/writing-a-provider.md. Needs pytest, which Joiner itself does not.
"""

import pytest

pytest.register_assert_rewrite("joiner.testing.provider")
