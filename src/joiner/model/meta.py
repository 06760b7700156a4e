"""`Value`, the base class of all frozen values, and the metadata of Kubernetes objects."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Final, NoReturn, TypeVar, dataclass_transform

import msgspec

V = TypeVar("V", bound="Value")
Item = TypeVar("Item")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _Keywords(msgspec.StructMeta):
    """Fields are given by name in every value, also in those that derive from another one."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        return super().__new__(cls, name, bases, namespace, **{"kw_only": True, **config})


class Value(msgspec.Struct, metaclass=_Keywords, frozen=True, rename="camel", omit_defaults=True):
    """A frozen value: built once, compared by content, changed only by making another one."""


def replace(value: V, **changes: Any) -> V:
    """The same value with some fields changed; no field can be forgotten."""
    return msgspec.structs.replace(value, **changes)


class FrozenDict(dict[str, Item]):
    """A mapping inside a value that many callers share: writing into it raises an error."""

    __slots__ = ()

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("this mapping is shared and frozen; make another one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenDict, (dict(self),))


EMPTY: Final[FrozenDict[Any]] = FrozenDict()


def freeze(value: Value, *fields: str) -> None:
    """In a `__post_init__`: make the mappings in these fields frozen ones."""
    for name in fields:
        found = getattr(value, name)
        if type(found) is not FrozenDict:
            msgspec.structs.force_setattr(value, name, FrozenDict(found))


class OwnerReference(Value):
    """The object that owns this one; this one is deleted with it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Value):
    """The part of `metadata` that we read."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class KubeObject(Value):
    """An API object. Its class has group, version and plural; its fields are the part of it that we read.

    Unknown fields are dropped on reading, so objects are only ever patched, never written back whole.
    """

    group: ClassVar[str] = ""
    version: ClassVar[str] = "v1"
    kind: ClassVar[str] = ""
    plural: ClassVar[str] = ""
    namespaced: ClassVar[bool] = True

    metadata: ObjectMeta = ObjectMeta()

    @classmethod
    def api_version(cls) -> str:
        """`group/version`, or only the version in the core group."""
        return f"{cls.group}/{cls.version}" if cls.group else cls.version

    @property
    def name(self) -> str:
        """The name of the object."""
        return self.metadata.name


def controller_of(thing: KubeObject) -> OwnerReference | None:
    """The owner that made the object and looks after it."""
    return next((owner for owner in thing.metadata.owner_references if owner.controller), None)
