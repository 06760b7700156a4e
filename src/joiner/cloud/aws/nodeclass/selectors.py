"""Selector terms of an EC2NodeClass: which subnets, security groups, images, reservations and placement group it means.

Terms of a list are alternatives; the fields of one term must all match.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

import msgspec

from joiner.model.meta import Value
from joiner.model.rules import Field, Rule, at_least_one, at_most_one, excludes

ANY_VALUE: Final = "*"
"""As the value of a tag: the tag must be there, whatever it says."""

TERMS: Final = Field(required=True, min_items=1, max_items=30)

_FULL: Final = Rule(
    cel="self.all(key, key != '' && self[key] != '')",
    message="tags have a key and a value; write '*' for any value",
    holds=lambda value: all(key and text for key, text in value.items()),
)
Tags = Annotated[
    Mapping[str, Annotated[str, Field(max_length=256)]],
    "Tags that must be there; the value * stands for any.",
    Field(max_properties=20, rules=(_FULL,)),
]


def _id(prefix: str) -> Field:
    return Field(pattern=f"^{prefix}-[0-9a-z]+$", words=f"an id like {prefix}-0123456789abcdef0", max_length=64)


OWNER: Final = Field(pattern="^[0-9]{12}$", words="an account of twelve digits")


class SubnetSelectorTerm(Value):
    """Which subnets machines may be launched into."""

    rules: ClassVar[tuple[Rule, ...]] = (
        at_least_one(("tags", "id"), "a subnet is selected by tags or by id"),
        excludes("id", ("tags",), "id stands alone: it names one subnet"),
    )

    tags: Tags = {}
    id: Annotated[str, "The id of one subnet.", _id("subnet")] = ""


class SecurityGroupSelectorTerm(Value):
    """Which security groups machines get."""

    rules: ClassVar[tuple[Rule, ...]] = (
        at_least_one(("tags", "id", "name"), "a security group is selected by tags, by id or by name"),
        excludes("id", ("tags", "name"), "id stands alone: it names one security group"),
        excludes("name", ("tags",), "name stands alone: it is the name of the group, not its tag Name"),
    )

    tags: Tags = {}
    id: Annotated[str, "The id of one security group.", _id("sg")] = ""
    name: Annotated[str, "The name of the group, which is not its tag Name.", Field(min_length=1, max_length=255)] = ""


class CapacityReservationSelectorTerm(Value):
    """Which capacity reservations machines are launched into first."""

    rules: ClassVar[tuple[Rule, ...]] = (
        at_least_one(
            ("tags", "id", "instanceType", "ownerID", "type", "instanceMatchCriteria"),
            "a capacity reservation is selected by id, or by tags, instanceType, ownerID and type",
        ),
        excludes(
            "id",
            ("tags", "instanceType", "ownerID", "type", "instanceMatchCriteria"),
            "id stands alone: it names one capacity reservation",
        ),
        at_most_one(
            ("type", "instanceMatchCriteria"), "type and instanceMatchCriteria are the same; write one of them"
        ),
    )

    tags: Tags = {}
    id: Annotated[str, "The id of one capacity reservation.", _id("cr")] = ""
    instance_type: Annotated[str, "The instance type that is reserved.", Field(min_length=1, max_length=64)] = ""
    owner_id: Annotated[str, "The account that owns the reservation.", OWNER] = msgspec.field(
        default="", name="ownerID"
    )
    type: Annotated[
        Literal["open", "targeted"] | None,
        "Whether matching machines fall into the reservation by themselves, or only those that name it.",
    ] = None
    instance_match_criteria: Annotated[Literal["open", "targeted"] | None, "Another name of type."] = None

    @property
    def criteria(self) -> str:
        """`open`, `targeted`, or nothing where both are meant."""
        return self.type or self.instance_match_criteria or ""


class PlacementGroupSelector(Value):
    """The placement group machines are launched into."""

    rules: ClassVar[tuple[Rule, ...]] = (
        at_least_one(("name", "id"), "a placement group is selected by name or by id"),
        at_most_one(("name", "id"), "name and id name one placement group each; write one of them"),
    )

    name: Annotated[str, "The name of the placement group.", Field(min_length=1, max_length=255)] = ""
    id: Annotated[str, "The id of the placement group.", _id("pg")] = ""


FAMILIES: Final = {
    "al2": "AL2",
    "al2023": "AL2023",
    "bottlerocket": "Bottlerocket",
    "windows2019": "Windows2019",
    "windows2022": "Windows2022",
    "windows2025": "Windows2025",
}
"""Family as an alias writes it to the one as amiFamily does."""
CUSTOM: Final = "Custom"
NO_WINDOWS: Final = "Windows nodes are not supported: use a Linux image, or run Karpenter's own provider for this pool"


def family_of_alias(alias: str) -> str:
    """The AMI family that an alias like `al2023@latest` names; empty for one that is not known."""
    return FAMILIES.get(alias.partition("@")[0], "")


class AMISelectorTerm(Value):
    """Which images machines boot."""

    rules: ClassVar[tuple[Rule, ...]] = (
        at_least_one(
            ("alias", "tags", "id", "name", "ssmParameter"),
            "an image is selected by alias, tags, id, name or ssmParameter",
        ),
        excludes("id", ("alias", "tags", "name", "owner"), "id stands alone: it names one image"),
        excludes("alias", ("tags", "name", "owner"), "alias stands alone: it names the images of a family"),
        Rule(
            cel=f"!has(self.alias) || [{', '.join(repr(each) for each in FAMILIES)}]"
            ".exists(family, self.alias.startsWith(family + '@'))",
            message=f"the family of an alias is one of {', '.join(FAMILIES)}",
            holds=lambda value: "alias" not in value or bool(family_of_alias(value["alias"])),
            field=".alias",
        ),
        Rule(
            cel="!has(self.alias) || !self.alias.startsWith('windows')",
            message=NO_WINDOWS,
            holds=lambda value: not value.get("alias", "").startswith("windows"),
            field=".alias",
        ),
    )

    alias: Annotated[
        str,
        "A family and a version of the images for EKS, like al2023@latest or bottlerocket@v1.21.0.",
        Field(
            pattern="^[a-zA-Z0-9]+@.+$",
            words="a family and a version with @ between, like al2023@latest",
            max_length=30,
        ),
    ] = ""
    tags: Tags = {}
    id: Annotated[str, "The id of one image.", _id("ami")] = ""
    name: Annotated[str, "The name of the image; * stands for any characters.", Field(max_length=255)] = ""
    owner: Annotated[str, "The owner: an account, self or amazon.", Field(max_length=64)] = ""
    ssm_parameter: Annotated[
        str, "The name or ARN of a parameter of the Systems Manager that has the id.", Field(max_length=2048)
    ] = ""

    @property
    def family(self) -> str:
        """The AMI family of the alias; empty without one."""
        return family_of_alias(self.alias)

    @property
    def version(self) -> str:
        """The version of the alias."""
        return self.alias.partition("@")[2]


ONE_ALIAS: Final = Rule(
    cel="!self.exists(term, has(term.alias)) || self.size() == 1",
    message="an alias stands alone: it cannot be combined with other terms",
    holds=lambda value: len(value) == 1 or not any("alias" in term for term in value if isinstance(term, Mapping)),
)


def tags_match(wanted: Mapping[str, str], present: Mapping[str, str]) -> bool:
    """Whether something with these tags is meant by a term."""
    return all(key in present and text in (ANY_VALUE, present[key]) for key, text in wanted.items())
