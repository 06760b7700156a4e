import pytest

from joiner import options
from joiner.options import Gates, Options, OptionsError


def test_defaults_are_those_that_are_documented() -> None:
    found = options.read([], {})

    assert found == Options()
    assert (found.batch_idle_duration, found.batch_max_duration, found.nomination_s) == (1.0, 10.0, 20.0)
    assert found.gates == Gates(reserved_capacity=True, node_overlay=True)


@pytest.mark.parametrize(
    ("arguments", "environment", "name", "wanted"),
    [
        pytest.param(["--batch-max-duration=5s"], {}, "batch_max_duration", 5.0, id="flag with equals"),
        pytest.param(["--batch-max-duration", "1m30s"], {}, "batch_max_duration", 90.0, id="flag and value"),
        pytest.param(["-metrics-port=9"], {}, "metrics_port", 9, id="one dash"),
        pytest.param(["--enable-profiling"], {}, "enable_profiling", True, id="a switch alone"),
        pytest.param(["--ignore-dra-requests=false"], {}, "ignore_dra_requests", False, id="a switch off"),
        pytest.param([], {"LOG_LEVEL": "debug"}, "log_level", "debug", id="environment"),
        pytest.param(["--log-level=error"], {"LOG_LEVEL": "debug"}, "log_level", "error", id="flag before environment"),
        pytest.param([], {"LOG_LEVEL": ""}, "log_level", "info", id="an empty variable says nothing"),
        pytest.param(
            ["--feature-gates=NodeRepair=true,NodeOverlay=false,Unheard=true"],
            {},
            "feature_gates",
            Gates(node_repair=True, node_overlay=False),
            id="gates, unknown ones passed over",
        ),
    ],
)
def test_flags_and_environment_set_options(
    arguments: list[str], environment: dict[str, str], name: str, wanted: object
) -> None:
    assert getattr(options.read(arguments, environment), name) == wanted


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--batch-max=5s"], "did you mean --batch-max-duration?", id="misspelt"),
        pytest.param(["--batch-max-duration=5"], "expected a duration", id="no unit"),
        pytest.param(["--batch-max-duration=0s"], "longer than zero", id="no length"),
        pytest.param(["--preference-policy=Obey"], "expected one of Respect, Ignore", id="not a choice"),
        pytest.param(["--metrics-port"], "a value is missing", id="no value"),
        pytest.param(["--metrics-port=many"], "a whole number", id="no number"),
        pytest.param(["--feature-gates=NodeRepair"], "Name=true", id="half a gate"),
        pytest.param(["run"], "is not a flag", id="not a flag"),
    ],
)
def test_what_cannot_be_understood_is_told(arguments: list[str], words: str) -> None:
    with pytest.raises(OptionsError) as caught:
        options.read(arguments, {})

    assert words in str(caught.value)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(OptionsError) as caught:
        options.read(["--nonsense", "--metrics-port=x"], {"LOG_LEVEL": "loud"})

    assert len(caught.value.problems) == 3
