from joiner.kube.client import Key
from joiner.sim.trace import Trace


def test_a_line_says_when_who_what_and_which() -> None:
    trace = Trace()
    trace.record(1.5, "kubelet", "status", "Pod", Key("default", "web"), "status.phase=Running")

    assert trace.last[0].split() == ["1.500", "kubelet", "status", "Pod", "default/web", "status.phase=Running"]


def test_only_the_last_lines_are_kept_but_all_are_counted() -> None:
    trace = Trace(last=2)
    for number in range(5):
        trace.record(number, "me", "create", "Node", f"n-{number}")

    assert [line.split()[-1] for line in trace.last] == ["n-3", "n-4"]
    assert (len(trace), trace.verbs["create"]) == (5, 5)


def test_a_digest_differs_with_every_line() -> None:
    one, other = Trace(last=1), Trace(last=1)
    for trace, name in ((one, "a"), (other, "b")):
        trace.record(0, "me", "create", "Node", name)
        trace.record(1, "me", "create", "Node", "same")

    assert list(one.last) == list(other.last)
    assert one.digest() != other.digest()


def test_whoever_asks_gets_every_line() -> None:
    lines: list[str] = []
    trace = Trace(last=1, sink=lines.append)
    trace.record(0, "me", "create", "Node", "a")
    trace.record(0, "me", "remove", "Node", "a")

    assert [line.split()[2] for line in lines] == ["create", "remove"]
