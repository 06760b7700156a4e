"""Core objects that are neither pods nor nodes: services, namespaces, events, leases."""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from joiner.model.meta import KubeObject, Value
from joiner.model.microtime import MicroTime


class ServiceSpec(Value):
    """Which pods the service selects."""

    selector: Mapping[str, str] = {}


class Service(KubeObject):
    """A name for a set of pods."""

    kind: ClassVar[str] = "Service"
    plural: ClassVar[str] = "services"

    spec: ServiceSpec = ServiceSpec()


class NamespaceStatus(Value):
    """Whether it is being deleted."""

    phase: str = ""


class Namespace(KubeObject):
    """A namespace; affinity terms may select namespaces by label."""

    kind: ClassVar[str] = "Namespace"
    plural: ClassVar[str] = "namespaces"
    namespaced: ClassVar[bool] = False

    status: NamespaceStatus = NamespaceStatus()


class ObjectReference(Value):
    """The object an event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class EventSource(Value):
    """The component that emits the event."""

    component: str = ""
    host: str = ""


class Event(KubeObject, omit_defaults=False):
    """Something that happened to an object, reported to users."""

    kind: ClassVar[str] = "Event"
    plural: ClassVar[str] = "events"

    involved_object: ObjectReference = ObjectReference()
    type: str = "Normal"
    reason: str = ""
    message: str = ""
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    source: EventSource = EventSource()
    reporting_component: str = ""


class LeaseSpec(Value):
    """The holder, since when, and how long the lease lasts without renewal."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: int | None = None


class Lease(KubeObject):
    """A node's heartbeat, or the lock of leader election."""

    group: ClassVar[str] = "coordination.k8s.io"
    kind: ClassVar[str] = "Lease"
    plural: ClassVar[str] = "leases"

    spec: LeaseSpec = LeaseSpec()
