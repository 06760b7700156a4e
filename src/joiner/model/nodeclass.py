"""The reference from a NodePool or NodeClaim to its NodeClass. The kinds of NodeClass are defined by their provider."""

from typing import Annotated, ClassVar

from joiner.model.meta import Value
from joiner.model.rules import Field, Rule, same_as_before


class NodeClassReference(Value):
    """Which NodeClass configures the machines."""

    rules: ClassVar[tuple[Rule, ...]] = (
        same_as_before("group", "the group of the NodeClass cannot be changed; make a new object instead"),
        same_as_before("kind", "the kind of the NodeClass cannot be changed; make a new object instead"),
    )

    group: Annotated[
        str,
        "The API group of the NodeClass, without a version.",
        Field(
            required=True,
            min_length=1,
            max_length=253,
            pattern="^[^/]*$",
            words="a group without a version: karpenter.kwok.sh and not karpenter.kwok.sh/v1alpha1",
        ),
    ] = ""
    kind: Annotated[str, "The kind of the NodeClass.", Field(required=True, min_length=1, max_length=63)] = ""
    name: Annotated[str, "The name of the NodeClass.", Field(required=True, min_length=1, max_length=253)] = ""

    @property
    def label_key(self) -> str:
        """The label that carries the name of the class on claims and nodes."""
        return f"{self.group}/{self.kind.lower()}"
