"""Label selectors of pods, budgets and workloads. An absent selector selects nothing, an empty one everything."""

from collections.abc import Mapping
from typing import Literal

from joiner.model.meta import Value


class LabelExpression(Value):
    """One condition on a label."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels satisfy the condition; an absent label satisfies NotIn."""
        if self.operator == "In":
            return self.key in labels and labels[self.key] in self.values
        if self.operator == "NotIn":
            return self.key not in labels or labels[self.key] not in self.values
        return (self.key in labels) == (self.operator == "Exists")


class LabelSelector(Value):
    """All labels and all expressions must match."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelExpression, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            expression.matches(labels) for expression in self.match_expressions
        )


def chooses(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether the selector is present and selects an object with these labels."""
    return selector is not None and selector.matches(labels)
