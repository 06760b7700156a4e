"""Successors: objects of the same name that take the place of others at the worst moment, just before a request arrives."""

from typing import Any

from joiner.kube.client import key_of
from joiner.model.codec import decode
from joiner.model.meta import KubeObject, ObjectMeta, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.sim.apiserver.client import Call, NoInterceptor
from joiner.sim.apiserver.server import ApiServer

STRANGER = {"group": "example.com", "kind": "OtherNodeClass", "name": "default"}


class Successor(NoInterceptor):
    """Puts a successor in the place of the object that the first request of one sort is about."""

    def __init__(self, verb: str, kind: type[KubeObject]) -> None:
        self.verb, self.kind, self.on = verb, kind, False
        self.server: ApiServer | None = None
        self.successor: Any = None

    def begin(self, server: ApiServer) -> None:
        """From now on."""
        self.server, self.on = server, True

    def before(self, call: Call) -> float:
        if self.on and self.server is not None and (call.verb, call.kind) == (self.verb, self.kind):
            found = self.server.find(call.kind, call.key.name, call.key.namespace)
            if found is not None:
                self.on = False
                self.successor = succeed(self.server, found)
        return 0.0

    def is_untouched(self) -> bool:
        """Whether the successor is as it came."""
        assert self.server is not None
        assert self.successor is not None, f"no {self.verb} of {self.kind.kind} was asked for"
        key = key_of(self.successor)
        return bool(self.server.find(self.kind, key.name, key.namespace) == self.successor)


def succeed(server: ApiServer, thing: Any) -> Any:
    """End an object and make another one of its name, which none of our controllers has any business with."""
    if thing.metadata.finalizers:
        thing = server.patch("test", thing, replace(thing, metadata=replace(thing.metadata, finalizers=())))
    if server.find(type(thing), thing.name, thing.metadata.namespace) is not None:
        server.delete("test", type(thing), thing.name, thing.metadata.namespace, grace_s=0)
    new = ObjectMeta(name=thing.name, namespace=thing.metadata.namespace)
    if isinstance(thing, Pod):
        thing = replace(thing, metadata=new, spec=replace(thing.spec, node_name="elsewhere"))
    elif isinstance(thing, Node):
        thing = replace(Node(), metadata=new, spec=replace(Node().spec, provider_id="sim://elsewhere/m-1"))
    else:
        thing = replace(decode({"spec": {"nodeClassRef": STRANGER}}, NodeClaim), metadata=new)
    server.load([thing])
    return server.get(type(thing), thing.name, thing.metadata.namespace)
