"""The client over HTTP, against a server on loopback: what it sends, what it makes of answers, and of answers that break."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest
from tests.loopback import Answer, Asked, Handler, Loopback, listening, status

from joiner.clock import SystemClock
from joiner.kube import errors
from joiner.kube.election import NotLeading
from joiner.kube.http.access import Access
from joiner.kube.http.client import HttpClient
from joiner.kube.http.credentials import InlineContent, StaticCredentials, TrustedCertificates
from joiner.kube.http.ratelimit import Priority, RateLimit
from joiner.kube.http.transport import Transport
from joiner.model.meta import KubeObject, ObjectMeta, replace
from joiner.model.node import Node, NodeSpec
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.taints import Taint

Test = Callable[[HttpClient], Coroutine[Any, Any, Any]]


def access(server: str, **given: Any) -> Access:
    return Access(
        **{
            "server": server,
            "credentials": StaticCredentials(token=InlineContent(b"secret-token")),
            "authority": TrustedCertificates(None),
            "origin": "the test",
            **given,
        }
    )


async def at_once(seconds: float) -> None:
    """No test waits."""


def asking(url: str, test: Test, *, way: Access | None = None, **client: Any) -> Any:
    """Run a test with a client of that server."""

    async def main() -> Any:
        limit = RateLimit(SystemClock(), per_second=1000, burst=1000)
        transport = Transport(way or access(url), limit, pause=at_once)
        try:
            return await test(HttpClient(transport, random=Random(1), **client))
        finally:
            await transport.close()

    return asyncio.run(main())


def against(handler: Handler, test: Test, **client: Any) -> tuple[Any, Loopback]:
    with listening(handler) as server:
        return asking(server.url, test, **client), server


def node(name: str, version: str = "1", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": version, **more}}


def event(happening: str, thing: dict[str, Any]) -> dict[str, Any]:
    return {"type": happening, "object": thing}


def end_of_list(version: str) -> dict[str, Any]:
    return event("BOOKMARK", node("", version, annotations={"k8s.io/initial-events-end": "true"}))


def names(things: Any) -> list[str]:
    return [each.name for each in things]


# -- lists -----------------------------------------------------------------------------------------------------------------


def test_a_list_comes_as_the_first_events_of_a_watch() -> None:
    lines = [event("ADDED", node("b")), event("ADDED", node("a")), end_of_list("7"), event("ADDED", node("later"))]

    found, server = against(lambda asked: Answer(lines=lines, stays=True), lambda client: client.list(Node))

    assert (names(found.items), found.resource_version) == (["a", "b"], "7")
    assert server.asked[0].query["sendInitialEvents"] == "true"
    assert server.asked[0].query["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in server.asked[0].query


def test_a_list_that_need_not_be_the_latest_may_come_from_the_servers_cache() -> None:
    _, server = against(lambda asked: Answer(lines=[end_of_list("7")]), lambda client: client.list(Node, latest=False))

    assert server.asked[0].query["resourceVersion"] == "0"


def test_a_server_without_streamed_lists_is_asked_for_pages_from_then_on() -> None:
    def handler(asked: Asked) -> Answer:
        if "sendInitialEvents" in asked.query:
            return status(
                422, "Invalid", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is on"
            )
        if "continue" in asked.query:
            return Answer({"metadata": {"resourceVersion": "9"}, "items": [node("a")]})
        return Answer({"metadata": {"resourceVersion": "9", "continue": "next"}, "items": [node("b")]})

    async def twice(client: HttpClient) -> Any:
        await client.list(Node)
        return await client.list(Node)

    found, server = against(handler, twice)

    assert (names(found.items), found.resource_version) == (["a", "b"], "9")
    assert [("limit" in each.query, each.query.get("continue")) for each in server.asked] == [
        (False, None), (True, None), (True, "next"), (True, None), (True, "next"),
    ]  # fmt: skip


def test_selectors_are_sent_and_choose_pages() -> None:
    _, server = against(
        lambda asked: Answer({"metadata": {"resourceVersion": "9"}, "items": None}),
        lambda client: client.list(Pod, namespace="x", labels={"b": "2", "a": "1"}, fields={"spec.nodeName": "n"}),
    )

    assert server.asked[0].path == "/api/v1/namespaces/x/pods"
    assert server.asked[0].query["labelSelector"] == "a=1,b=2"
    assert server.asked[0].query["fieldSelector"] == "spec.nodeName=n"


def test_a_list_cut_off_before_its_end_is_no_list() -> None:
    with pytest.raises(errors.KubeError):
        against(lambda asked: Answer(lines=[event("ADDED", node("a"))], cut=True), lambda client: client.list(Node))


def test_an_object_that_cannot_be_read_does_not_hide_the_others() -> None:
    told: list[str] = []
    broken = {**node("bad"), "spec": {"taints": [{"key": 7, "effect": "NoSchedule"}]}}
    items = {"metadata": {"resourceVersion": "9"}, "items": [node("a"), broken, node("c")]}

    found, _ = against(
        lambda asked: Answer(items), lambda client: client.list(Node, labels={"a": "1"}), unreadable=told.append
    )

    assert names(found.items) == ["a", "c"]
    assert len(told) == 1
    assert "bad" in told[0]
    assert "taints" in told[0]


def test_a_kind_that_the_cluster_lacks_is_empty_and_never_asked_for() -> None:
    found, server = against(lambda asked: status(404), lambda client: client.list(NodePool), absent={NodePool})

    assert found.items == ()
    assert not server.asked


# -- watches ---------------------------------------------------------------------------------------------------------------


async def heard(client: HttpClient, kind: type[KubeObject] = Node) -> list[tuple[str, str]]:
    return [(each.type, each.object.name) async for each in client.watch(kind, "5")]


def test_a_watch_asks_for_bookmarks_from_its_version_and_ends_with_the_server() -> None:
    lines = [event("ADDED", node("a")), event("BOOKMARK", node("", "8")), event("DELETED", node("a", "9"))]

    found, server = against(lambda asked: Answer(lines=lines), heard)

    assert found == [("ADDED", "a"), ("BOOKMARK", ""), ("DELETED", "a")]
    query = server.asked[0].query
    assert (query["resourceVersion"], query["allowWatchBookmarks"], query["watch"]) == ("5", "true", "1")
    assert 300 <= int(query["timeoutSeconds"]) <= 600


@pytest.mark.parametrize("pieces", [1, 7, 50])
def test_events_may_arrive_in_any_pieces(pieces: int) -> None:
    text = b"".join(json.dumps(event("ADDED", node(f"n{number}"))).encode() + b"\n" for number in range(5))
    size = -(-len(text) // pieces)
    lines = [text[start : start + size] for start in range(0, len(text), size)]

    found, _ = against(lambda asked: Answer(lines=list(lines)), heard)

    assert [name for _, name in found] == [f"n{number}" for number in range(5)]


def test_a_watch_that_is_cut_off_keeps_what_came_and_tells() -> None:
    came: list[str] = []

    async def test(client: HttpClient) -> None:
        watch = client.watch(Node, "5")
        while True:
            came.append((await anext(watch)).object.name)

    with pytest.raises(errors.Unreachable):
        against(lambda asked: Answer(lines=[event("ADDED", node("a")), b'{"type":"ADD'], cut=True), test)
    assert came == ["a"]


@pytest.mark.parametrize(
    "answer",
    [
        status(410, "Expired", "too old resource version"),
        Answer(lines=[event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})]),
    ],
    ids=["at once", "in the stream"],
)
def test_a_version_that_is_too_old_is_gone(answer: Answer) -> None:
    with pytest.raises(errors.Gone, match="too old"):
        against(lambda asked: answer, heard)


def test_nulls_are_absent() -> None:
    thing = {**node("a"), "spec": {"taints": None, "providerID": None}}

    assert against(lambda asked: Answer(lines=[event("ADDED", thing)]), heard)[0] == [("ADDED", "a")]


# -- writes ----------------------------------------------------------------------------------------------------------------


BEFORE = Node(
    metadata=ObjectMeta(name="n", uid="u", resource_version="3", labels={"a": "1", "b": "2"}),
    spec=NodeSpec(taints=(Taint(key="t", effect="NoSchedule"),)),
)


def labelled(thing: Any, **labels: str) -> Any:
    return replace(thing, metadata=replace(thing.metadata, labels=labels))


def test_a_patch_holds_exactly_what_changed_and_the_identity_of_the_object() -> None:
    _, server = against(
        lambda asked: Answer(node("n", "4")), lambda client: client.patch(BEFORE, labelled(BEFORE, a="1", c="3"))
    )

    asked = server.asked[-1]
    assert (asked.method, asked.path) == ("PATCH", "/api/v1/nodes/n")
    assert asked.headers["Content-Type"] == "application/merge-patch+json"
    assert asked.document == {"metadata": {"labels": {"b": None, "c": "3"}, "uid": "u"}}


def test_a_locked_patch_names_the_version_that_was_read() -> None:
    _, server = against(
        lambda asked: Answer(node("n", "4")),
        lambda client: client.patch(BEFORE, labelled(BEFORE, a="1"), locked=True),
    )

    assert server.asked[-1].document["metadata"]["resourceVersion"] == "3"


def test_nothing_is_sent_when_nothing_differs() -> None:
    async def test(client: HttpClient) -> Any:
        stated = replace(BEFORE, status=replace(BEFORE.status, capacity={"cpu": 1}))
        return await client.patch(BEFORE, BEFORE), await client.patch(BEFORE, stated)

    found, server = against(lambda asked: Answer(node("n")), test)

    assert found == (BEFORE, BEFORE)
    assert not server.asked


def test_entries_of_lists_keep_the_fields_that_we_do_not_model() -> None:
    live = {
        **node("n", "3"),
        "spec": {"taints": [{"key": "t", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]},
    }
    wanted = replace(
        BEFORE, spec=replace(BEFORE.spec, taints=(*BEFORE.spec.taints, Taint(key="x", effect="NoExecute")))
    )

    _, server = against(lambda asked: Answer(live), lambda client: client.patch(BEFORE, wanted, locked=True))

    assert [each.method for each in server.asked] == ["GET", "PATCH"]
    assert server.asked[1].document["spec"]["taints"] == [
        {"key": "t", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"},
        {"key": "x", "effect": "NoExecute"},
    ]


def test_a_locked_patch_of_a_list_that_has_moved_on_is_a_conflict_before_it_is_sent() -> None:
    wanted = replace(BEFORE, spec=replace(BEFORE.spec, taints=(Taint(key="x", effect="NoExecute"),)))

    with pytest.raises(errors.Conflict, match="read it again"):
        against(lambda asked: Answer(node("n", "9")), lambda client: client.patch(BEFORE, wanted, locked=True))


def test_a_status_goes_to_its_subresource_and_takes_nothing_else_along() -> None:
    pool = NodePool(metadata=ObjectMeta(name="p", uid="u"))
    wanted = replace(labelled(pool, x="1"), status=replace(pool.status, nodes=3))

    _, server = against(lambda asked: Answer(node("p")), lambda client: client.patch_status(pool, wanted))

    assert server.asked[0].path == "/apis/karpenter.sh/v1/nodepools/p/status"
    assert server.asked[0].document == {"status": {"nodes": 3}, "metadata": {"uid": "u"}}


def test_a_deletion_names_the_object_it_means() -> None:
    _, server = against(
        lambda asked: Answer({"kind": "Status"}), lambda client: client.delete(Pod, "p", "x", uid="u", grace_period_s=0)
    )

    asked = server.asked[0]
    assert (asked.method, asked.path) == ("DELETE", "/api/v1/namespaces/x/pods/p")
    assert asked.document["preconditions"] == {"uid": "u"}
    assert asked.document["gracePeriodSeconds"] == 0


def test_eviction_binding_and_scale_use_their_subresources() -> None:
    async def test(client: HttpClient) -> None:
        await client.evict("x", "p", uid="u")
        await client.bind("x", "p", node="n", uid="u")
        await client.scale(NodePool, "pool", replicas=3)

    _, server = against(lambda asked: Answer({"kind": "Status"}), test)

    eviction, binding, scale = server.asked
    assert eviction.path == "/api/v1/namespaces/x/pods/p/eviction"
    assert eviction.document["deleteOptions"]["preconditions"] == {"uid": "u"}
    assert binding.path == "/api/v1/namespaces/x/pods/p/binding"
    assert binding.document["target"]["name"] == "n"
    assert scale.path == "/apis/karpenter.sh/v1/nodepools/pool/scale"
    assert scale.document == {"spec": {"replicas": 3}}


def test_what_the_schema_requires_is_written_also_when_it_is_empty() -> None:
    _, server = against(
        lambda asked: Answer(node("p")), lambda client: client.create(NodePool(metadata=ObjectMeta(name="p")))
    )

    assert server.asked[0].document["spec"]["template"]["spec"]["requirements"] == []


def busy_at_first(times: int, retry_after: str = "1") -> Handler:
    """A server that refuses so many requests for now, and then does what it is asked."""
    refused = status(429, "TooManyRequests", "busy")
    refused.headers["Retry-After"] = retry_after
    waiting = [refused] * times
    return lambda asked: waiting.pop() if waiting else Answer(node("n"))


def test_what_the_server_is_too_busy_for_is_sent_again() -> None:
    found, server = against(busy_at_first(4), lambda client: client.get(Node, "n"))

    assert found.name == "n"
    assert len(server.asked) == 5


@pytest.mark.parametrize(
    ("times", "retry_after", "client", "sent"),
    [(5, "1", {}, 5), (1, "6", {}, 1), (1, "1", {"priority": Priority.LEASE}, 1)],
    ids=["it-stays-busy", "it-asks-for-long", "the-lease-has-callers-who-know-better"],
)
def test_a_server_that_is_too_busy_is_told_to_the_caller(
    times: int, retry_after: str, client: dict[str, Any], sent: int
) -> None:
    with listening(busy_at_first(times, retry_after)) as server:
        with pytest.raises(errors.Throttled):
            asking(server.url, lambda client: client.get(Node, "n"), **client)

        assert len(server.asked) == sent


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (status(404, "NotFound", "no"), errors.NotFound),
        (status(409, "AlreadyExists", "no"), errors.AlreadyExists),
        (status(409, "Conflict", "no"), errors.Conflict),
        (status(422, "Invalid", "no"), errors.Invalid),
        (status(400, "BadRequest", "no"), errors.Invalid),
        (status(401, "Unauthorized", "no"), errors.Unauthorized),
        (status(403, "Forbidden", "no"), errors.Forbidden),
        (status(410, "Gone", "no"), errors.Gone),
        (status(429, "TooManyRequests", "no"), errors.Throttled),
        (status(500, "InternalError", "no"), errors.Unreachable),
        (status(500, "", "no: etcdserver: request is too large"), errors.Invalid),
        (status(503, "ServiceUnavailable", "no"), errors.Unreachable),
        (Answer(text=b"<html>no</html>", status=502), errors.Unreachable),
    ],
)
def test_what_the_server_says_is_told_apart(answer: Answer, error: type[errors.KubeError]) -> None:
    with pytest.raises(errors.KubeError, match="no") as raised:
        against(lambda asked: answer, lambda client: client.get(Node, "n"))
    assert type(raised.value) is error


def test_everything_that_is_wrong_with_an_object_is_told() -> None:
    causes = [{"field": "spec.weight", "message": "too large"}, {"field": "spec.limits", "message": "negative"}]

    with pytest.raises(errors.Invalid) as raised:
        against(lambda asked: status(422, "Invalid", "no", causes=causes), lambda client: client.create(BEFORE))
    assert raised.value.causes == ("spec.weight: too large", "spec.limits: negative")


def test_the_server_says_how_long_to_wait() -> None:
    answer = status(429, "TooManyRequests", "busy")
    answer.headers["Retry-After"] = "7"

    with pytest.raises(errors.Throttled) as raised:
        against(lambda asked: answer, lambda client: client.get(Node, "n"))
    assert raised.value.after_s == 7


@pytest.mark.parametrize(
    "answer",
    [
        status(429, "TooManyRequests", "Cannot evict", causes=[{"reason": "DisruptionBudget", "message": "needs 3"}]),
        status(
            500, "InternalError", "This pod has more than one PodDisruptionBudget, which eviction does not support."
        ),
    ],
)
def test_an_eviction_that_a_budget_blocks(answer: Answer) -> None:
    with pytest.raises(errors.EvictionBlocked):
        against(lambda asked: answer, lambda client: client.evict("x", "p"))


def test_an_eviction_from_a_namespace_that_is_going_is_not_a_lack_of_permission() -> None:
    cause = {
        "reason": "NamespaceTerminating",
        "field": "metadata.namespace",
        "message": "namespace x is being terminated",
    }
    with pytest.raises(errors.Conflict, match="goes with its namespace"):
        against(lambda asked: status(403, "Forbidden", "unable", causes=[cause]), lambda client: client.evict("x", "p"))


def test_an_eviction_that_the_server_is_too_busy_for_is_not_blocked_by_a_budget() -> None:
    with pytest.raises(errors.Throttled):
        against(lambda asked: status(429, "TooManyRequests", "busy"), lambda client: client.evict("x", "p"))


# -- permission, identity, connection ---------------------------------------------------------------------------------------


def test_a_replica_that_does_not_lead_reads_and_sends_no_write() -> None:
    def refuse() -> float:
        raise NotLeading("not now")

    async def test(client: HttpClient) -> None:
        await client.get(Node, "n")
        for write in (
            client.create(BEFORE),
            client.patch(BEFORE, labelled(BEFORE)),
            client.delete(Node, "n"),
            client.evict("x", "p"),
            client.bind("x", "p", node="n"),
        ):
            with pytest.raises(NotLeading):
                await write

    _, server = against(lambda asked: Answer(node("n")), test, permit=refuse)

    assert [each.method for each in server.asked] == ["GET"]


def test_a_write_does_not_outlast_its_permission() -> None:
    with pytest.raises(errors.Unreachable, match="in time"):
        against(
            lambda asked: Answer(lines=[], stays=True),
            lambda client: client.delete(Node, "n"),
            permit=lambda: 0.2,
        )


class Rotating(StaticCredentials):
    """Has a better token after the first one was refused."""

    def rejected(self) -> bool:
        self._token = InlineContent(b"fresh")
        return True


def test_a_refused_identity_is_renewed_once() -> None:
    def handler(asked: Asked) -> Answer:
        return (
            Answer(node("n")) if asked.headers["Authorization"] == "Bearer fresh" else status(401, "Unauthorized", "no")
        )

    with listening(handler) as server:
        way = access(server.url, credentials=Rotating(token=InlineContent(b"stale")))
        found = asking(server.url, lambda client: client.get(Node, "n"), way=way)

    assert found.name == "n"
    assert [each.headers["Authorization"] for each in server.asked] == ["Bearer stale", "Bearer fresh"]


def test_no_answer_is_unreachable_and_no_message_holds_the_token() -> None:
    with listening(lambda asked: Answer({})) as server:
        url = server.url
    with pytest.raises(errors.Unreachable, match="cannot be reached") as raised:
        asking(url, lambda client: client.get(Node, "n"))

    assert "secret-token" not in f"{raised.value!r} {raised.value.__cause__!r} {access(url)!r}"


def test_requests_go_through_the_proxy() -> None:
    with listening(lambda asked: Answer(node("n"))) as proxy:
        way = access("http://cluster.example.com:8001", proxy=proxy.url)
        found = asking("", lambda client: client.get(Node, "n"), way=way)

    assert found.name == "n"
    assert proxy.asked[0].headers["Host"] == "cluster.example.com:8001"


# -- several API servers ----------------------------------------------------------------------------------------------------


def _asks_twice_for_nodes(handler: Handler) -> list[tuple[str | None, str | None]]:
    """A list, a watch that ends, and a list after that: which versions were asked for."""

    async def test(client: HttpClient) -> None:
        listing = await client.list(Node, latest=False)
        async for _ in client.watch(Node, listing.resource_version):
            pass
        await client.list(Node, latest=False)

    _, server = against(handler, test)
    return [
        (each.query.get("resourceVersion"), each.query.get("resourceVersionMatch"))
        for each in server.asked
        if "sendInitialEvents" in each.query or "limit" in each.query
    ]


@pytest.mark.parametrize("streams", [True, False])
def test_a_list_is_never_older_than_what_was_heard_before(streams: bool) -> None:
    def handler(asked: Asked) -> Answer:
        if "limit" in asked.query:
            return Answer({"metadata": {"resourceVersion": "7"}, "items": []})
        if "sendInitialEvents" in asked.query:
            return Answer(lines=[end_of_list("7")]) if streams else status(422, "Invalid", "not here")
        return Answer(lines=[event("ADDED", node("a", "12"))])

    versions = _asks_twice_for_nodes(handler)

    assert (versions[0][0], versions[-1]) == ("0", ("12", "NotOlderThan"))


def test_versions_that_begin_again_further_down_are_listed_as_they_are_now() -> None:
    def handler(asked: Asked) -> Answer:
        if "sendInitialEvents" not in asked.query:
            return Answer(lines=[event("ADDED", node("a", "12"))])
        if asked.query.get("resourceVersion") == "12":
            causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
            return status(504, "Timeout", "Too large resource version: 12, current: 3", causes=causes)
        return Answer(lines=[end_of_list("7")])

    assert [version for version, _ in _asks_twice_for_nodes(handler)] == ["0", "12", None]
