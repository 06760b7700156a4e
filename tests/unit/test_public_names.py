"""What others may build on."""

import subprocess
import sys

import pytest

import joiner

PUBLIC = ["CloudProvider", "Plan", "Problem", "Refusal", "Requirements", "__version__", "schedule"]


def test_the_public_names_are_the_agreed_ones() -> None:
    assert joiner.__all__ == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(joiner, name) is not None


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="it has CloudProvider"):
        _ = joiner.nothing


def test_the_package_itself_imports_nothing_heavy() -> None:
    asked = "import sys, joiner; print([name for name in ('msgspec', 'numpy', 'yaml', 'rich') if name in sys.modules])"

    answered = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)

    assert answered.stdout.strip() == "[]"
