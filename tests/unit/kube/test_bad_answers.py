"""Answers that no API server gives: of proxies, login pages, servers of another kind, and connections that go silent.

None may be taken for an answer of the API server, and none may end the process: each is an error that is tried again.
"""

import asyncio
import json
from typing import Any

import pytest
from tests.loopback import Answer, Asked, listening, status
from tests.unit.kube.test_http_client import access, against, asking, end_of_list, event, names, node

from joiner.kube import errors
from joiner.kube.client import WatchEvent
from joiner.kube.http import preflight
from joiner.kube.http.client import HttpClient
from joiner.model.meta import ObjectMeta
from joiner.model.node import Node

HTML = b"<html><body>please log in</body></html>"
PAGES_ONLY = status(422, "Invalid", "sendInitialEvents is forbidden")

NOT_OF_AN_API_SERVER = [
    pytest.param(Answer(text=HTML, headers={"Content-Type": "text/html"}), id="html"),
    pytest.param(Answer(text=HTML), id="html-said-to-be-json"),
    pytest.param(Answer({"error": "please log in"}), id="another-document"),
    pytest.param(Answer([]), id="list"),
    pytest.param(Answer("ok"), id="text"),
    pytest.param(Answer(None), id="null"),
    pytest.param(Answer(text=b""), id="empty"),
    pytest.param(Answer(text=b'{"metadata": {"name'), id="half"),
    pytest.param(Answer(text=b"\xff\xfe\x00"), id="bytes"),
    pytest.param(Answer({"metadata": 7, "items": 7}), id="numbers"),
    pytest.param(Answer(text=HTML, status=302, headers={"Location": "https://login.example.com"}), id="redirect"),
    pytest.param(
        Answer({}, status=302, headers={"Location": "https://login.example.com"}), id="redirect-with-document"
    ),
    pytest.param(Answer(text=HTML, status=200, headers={"Content-Encoding": "gzip"}), id="said-to-be-packed"),
]


@pytest.mark.parametrize("answer", NOT_OF_AN_API_SERVER)
def test_a_list_of_another_server_is_no_list(answer: Answer) -> None:
    def handler(asked: Asked) -> Answer:
        return PAGES_ONLY if "sendInitialEvents" in asked.query else answer

    with pytest.raises(errors.KubeError):
        against(handler, lambda client: client.list(Node))


@pytest.mark.parametrize("answer", NOT_OF_AN_API_SERVER)
def test_a_streamed_list_of_another_server_is_no_list(answer: Answer) -> None:
    with pytest.raises(errors.KubeError):
        against(lambda asked: answer, lambda client: client.list(Node))


@pytest.mark.parametrize("answer", NOT_OF_AN_API_SERVER)
def test_an_object_of_another_server_is_no_object(answer: Answer) -> None:
    with pytest.raises(errors.KubeError):
        against(lambda asked: answer, lambda client: client.get(Node, "n"))
    with pytest.raises(errors.KubeError):
        against(lambda asked: answer, lambda client: client.create(Node(metadata=ObjectMeta(name="n"))))


@pytest.mark.parametrize("answer", NOT_OF_AN_API_SERVER)
def test_nothing_was_deleted_or_evicted_where_another_server_answers(answer: Answer) -> None:
    with pytest.raises(errors.KubeError):
        against(lambda asked: answer, lambda client: client.delete(Node, "n"))
    with pytest.raises(errors.KubeError):
        against(lambda asked: answer, lambda client: client.evict("x", "p"))


@pytest.mark.parametrize("answer", NOT_OF_AN_API_SERVER)
def test_another_server_has_no_version_and_no_kinds_and_allows_nothing(answer: Answer) -> None:
    async def each(client: HttpClient) -> None:
        with pytest.raises(errors.KubeError):
            await preflight.version(client.transport)
        with pytest.raises(errors.KubeError):
            await preflight.unknown_kinds(client.transport, [Node])
        with pytest.raises(errors.KubeError):
            await preflight.denied(client.transport, [preflight.permission("list", Node)])

    against(lambda asked: answer, each)


async def collected(client: HttpClient, version: str = "5") -> list[WatchEvent[Node]]:
    return [each async for each in client.watch(Node, version)]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(HTML + b"\n", id="html"),
        pytest.param(b'{"type": "ADDED", "object": {"metadata": {"na\n', id="half"),
        pytest.param(b"[]\n", id="list"),
        pytest.param(b'"ok"\n', id="text"),
        pytest.param(b"null\n", id="null"),
        pytest.param(b"{}\n", id="nothing"),
        pytest.param({"type": "ADDED"}, id="no-object"),
        pytest.param({"type": "ADDED", "object": None}, id="null-object"),
        pytest.param({"type": "ADDED", "object": {}}, id="empty-object"),
        pytest.param({"type": "ADDED", "object": []}, id="list-as-object"),
        pytest.param({"type": "MELTED", "object": node("n")}, id="unknown-type"),
        pytest.param({"type": "BOOKMARK", "object": {}}, id="bookmark-of-nothing"),
        pytest.param({"type": "ERROR"}, id="error-without-status"),
        pytest.param({"type": "ERROR", "object": {"code": "many"}}, id="error-of-another-shape"),
        pytest.param({"type": "ERROR", "object": "gone"}, id="error-in-words"),
        pytest.param(b"\xff\xfe\n", id="bytes"),
    ],
)
def test_a_line_that_is_no_event_ends_the_watch_and_changes_nothing(line: Any) -> None:
    seen: list[str] = []

    async def follow(client: HttpClient) -> None:
        async for each in client.watch(Node, "5"):
            seen.append(each.object.name)  # noqa: PERF401 — what came before the error counts

    with pytest.raises(errors.KubeError):
        against(lambda asked: Answer(lines=[event("ADDED", node("first", "6")), line]), follow)

    assert seen == ["first"]


def test_an_object_that_cannot_be_read_is_gone_when_it_was_deleted() -> None:
    broken = node("n", "7") | {"spec": {"taints": "many"}}
    found, _ = against(lambda asked: Answer(lines=[event("DELETED", broken)]), collected)

    [gone] = found
    assert (gone.type, gone.object.name, gone.object.metadata.uid) == ("DELETED", "n", "uid-n")
    assert gone.object.metadata.resource_version == "7"


def test_a_list_whose_end_never_comes_is_asked_for_in_pages() -> None:
    def handler(asked: Asked) -> Answer:
        if "watch" in asked.query:
            return Answer(lines=[event("ADDED", node("a"))])
        return Answer({"metadata": {"resourceVersion": "9"}, "items": [node("a"), node("b")]})

    found, _ = against(handler, lambda client: client.list(Node))

    assert (names(found.items), found.resource_version) == (["a", "b"], "9")


def test_a_list_without_objects_may_say_null() -> None:
    def handler(asked: Asked) -> Answer:
        return PAGES_ONLY if "watch" in asked.query else Answer({"metadata": {"resourceVersion": "9"}, "items": None})

    found, _ = against(handler, lambda client: client.list(Node))

    assert (found.items, found.resource_version) == ((), "9")


def test_a_page_that_is_too_old_is_told() -> None:
    def handler(asked: Asked) -> Answer:
        if "watch" in asked.query:
            return PAGES_ONLY
        if "continue" in asked.query:
            return status(410, "Expired", "The provided continue parameter is too old")
        return Answer({"metadata": {"resourceVersion": "9", "continue": "x"}, "items": [node("a")]})

    with pytest.raises(errors.Gone):
        against(handler, lambda client: client.list(Node))


@pytest.mark.parametrize("text", ["86400", "99999999999999999999999"])
def test_no_server_can_ask_for_more_patience_than_a_minute(text: str) -> None:
    busy = status(429, "TooManyRequests", "later")
    busy.headers["Retry-After"] = text

    with pytest.raises(errors.Throttled) as told:
        against(lambda asked: busy, lambda client: client.get(Node, "n"))

    assert told.value.after_s == 60.0


def test_a_patience_that_is_no_number_of_seconds_is_a_second() -> None:
    for text in ("Wed, 21 Oct 2026 07:28:00 GMT", "-5", "²", "soon", ""):
        busy = status(429, "TooManyRequests", "later")
        busy.headers["Retry-After"] = text
        with pytest.raises(errors.Throttled) as told:
            against(lambda asked, busy=busy: busy, lambda client: client.get(Node, "n"))  # type: ignore[misc]
        assert told.value.after_s == 1.0


def test_a_page_of_a_proxy_is_told_in_a_line() -> None:
    page = b"<html>\n<head><style>" + b"x" * 50_000 + b"</style></head>\n<body>Bad Gateway</body></html>"
    answer = Answer(text=page, status=502, headers={"Content-Type": "text/html"})

    with pytest.raises(errors.Unreachable) as told:
        against(lambda asked: answer, lambda client: client.get(Node, "n"))

    assert len(str(told.value)) < 400
    assert "\n" not in str(told.value)


def test_a_proxy_that_refuses_us_is_told_without_its_password() -> None:
    def handler(asked: Asked) -> Answer:
        return Answer({}, status=407)

    with listening(handler) as proxy:
        for server in ("http://cluster.example.com:8001", "https://cluster.example.com"):
            way = access(server, proxy=proxy.url.replace("//", "//someone:the-password@"))
            with pytest.raises(errors.KubeError) as told:
                asking("", lambda client: client.get(Node, "n"), way=way)
            assert "the-password" not in f"{told.value!r} {told.value.__cause__!r}"


def test_a_large_object_comes_whole_whatever_the_pieces() -> None:
    large = node("n", "6", annotations={"x": "ü" * 700_000})
    line = json.dumps(event("ADDED", large)).encode() + b"\n"
    pieces = [line[at : at + 1_000] for at in range(0, len(line), 1_000)]

    found, _ = against(lambda asked: Answer(lines=pieces), collected)

    assert len(found[0].object.metadata.annotations["x"]) == 700_000


def test_a_list_and_its_end_in_one_piece() -> None:
    lines = [json.dumps(event("ADDED", node("a"))).encode() + b"\n" + json.dumps(end_of_list("7")).encode() + b"\n"]

    found, _ = against(lambda asked: Answer(lines=lines, stays=True), lambda client: client.list(Node))

    assert names(found.items) == ["a"]


def test_a_server_that_ends_in_the_middle_of_a_line_tells_nothing_of_it() -> None:
    lines = [event("ADDED", node("a", "6")), b'{"type": "ADDED", "object": {"metadata": {"name": "b"']

    found, _ = against(lambda asked: Answer(lines=lines), collected)

    assert [each.object.name for each in found] == ["a"]


def test_requests_that_are_given_up_leave_the_others_alone() -> None:
    def handler(asked: Asked) -> Answer:
        return Answer(lines=[], stays=True) if asked.path.endswith("/slow") else Answer(node("n"))

    async def test(client: HttpClient) -> str:
        slow = [asyncio.create_task(client.get(Node, "slow")) for _ in range(20)]
        await asyncio.sleep(0.1)
        for each in slow:
            each.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        return (await client.get(Node, "n")).name

    found, _ = against(handler, test)

    assert found == "n"
