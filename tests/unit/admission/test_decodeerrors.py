"""What the decoder could not read, in words that say what is allowed."""

from typing import Any

import pytest

from joiner.admission.decodeerrors import problem
from joiner.model.codec import DecodeError, decode
from joiner.model.pod import Pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def spread(**fields: Any) -> dict[str, Any]:
    return {"topologySpreadConstraints": [fields]}


def chosen(**fields: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [fields]}]}}}}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param(
            chosen(key="a", operator="Equals"),
            "matchExpressions[0].operator: 'Equals' is not one of the allowed values;"
            " allowed: In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte",
            id="a word of a few",
        ),
        pytest.param(chosen(key="a", operator="Exist"), "did you mean Exists?", id="a word like another"),
        pytest.param(spread(maxSkew=1), "topologySpreadConstraints[0].topologyKey: is missing", id="missing"),
        pytest.param({"priority": "high"}, "spec.priority: must be a whole number, not the text 'high'", id="a number"),
        pytest.param({"schedulerName": 5}, 'must be text, not the number 5; put it in quotes: "5"', id="text"),
        pytest.param(
            {"nodeSelector": {"a.b/c": True}}, "spec.nodeSelector[a.b/c]: must be text, not true", id="a label"
        ),
        pytest.param({"nodeSelector": {5: "a"}}, "spec.nodeSelector: Expected `str`, got `int`", id="a key"),
        pytest.param({"containers": {}}, "spec.containers: must be a list, not a mapping", id="a list"),
        pytest.param({"overhead": {"cpu": "much"}}, "'much' is not a quantity", id="an amount"),
    ],
)
def test_what_cannot_be_read_is_told_with_what_could(spec: dict[Any, Any], words: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode({"spec": spec}, Pod)

    assert words in str(problem(caught.value, {"spec": spec}, Pod))
