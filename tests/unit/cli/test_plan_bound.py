"""`joiner plan --bound`: what no plan can cost less than."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from joiner.cli.main import cli
from joiner.cli.plan import manifests as planned
from joiner.offline.report import plan as planreport

MANIFESTS = """\
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  limits: {cpu: "1000"}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 7
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
"""


@pytest.fixture
def manifests(tmp_path: Path) -> str:
    path = tmp_path / "all.yaml"
    path.write_text(MANIFESTS, encoding="utf-8")
    return str(path)


def test_the_table_ends_with_the_bound(manifests: str) -> None:
    result = CliRunner().invoke(cli, ["plan", "-f", manifests, "--bound"])

    assert result.exit_code == 0, result.output
    assert "No plan costs less than" in result.output
    assert "above that" in result.output
    assert "not counted, so the true least may be higher: limits" in result.output


def test_where_no_pod_is_placed_no_price_is_compared(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(MANIFESTS.replace('cpu: "1",', 'cpu: "9999",'), encoding="utf-8")

    result = CliRunner().invoke(cli, ["plan", "-f", str(path), "--bound"])

    assert "No pod is placed, so there is no price to compare" in result.output


def test_data_carries_the_bound_only_when_asked_for(manifests: str) -> None:
    plain, bounded = (
        json.loads(CliRunner().invoke(cli, ["plan", "-f", manifests, "-o", "json", *more]).stdout)
        for more in ([], ["--bound"])
    )

    assert "bound" not in plain
    assert 0 < bounded["bound"]["hourly"] <= bounded["summary"]["hourly"]
    assert bounded["bound"]["gap"] == pytest.approx(bounded["summary"]["hourly"] / bounded["bound"]["hourly"] - 1)
    assert sum(part["pods"] for part in bounded["bound"]["parts"]) == 7


def test_the_parts_of_a_bound_add_up(manifests: str) -> None:
    told = json.loads(CliRunner().invoke(cli, ["plan", "-f", manifests, "-o", "json", "--bound"]).stdout)["bound"]

    parts = sum(part["pods"] * part["hourlyEach"] for part in told["parts"])
    assert parts + told["wholeNodes"] - told["roomThatIsThere"] == pytest.approx(told["hourly"])


def test_far_from_the_bound_preferences_are_told_of(tmp_path: Path) -> None:
    term = "{weight: 1, preference: {matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}}"
    wish = f"affinity: {{nodeAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}"
    path = tmp_path / "all.yaml"
    both = MANIFESTS.replace("values: [on-demand]", "values: [on-demand, spot]")
    path.write_text(both.replace("spec: {containers", f"spec: {{{wish}, containers"), encoding="utf-8")

    result = CliRunner().invoke(cli, ["plan", "-f", str(path), "--bound"])

    assert "  without preferences a plan costs " in result.output


@pytest.mark.parametrize(
    "more", [["--scenario", "-"], ["-f", "x.yaml", "--explain", "web-0"]], ids=["scenario", "explain"]
)
def test_it_is_about_a_whole_plan_of_manifests(more: list[str]) -> None:
    result = CliRunner().invoke(cli, ["plan", "--bound", *more], input="{}")

    assert result.exit_code == 2


def test_beside_the_bound_stands_what_came_of_each_way_of_planning(manifests: str) -> None:
    drawn = CliRunner().invoke(cli, ["plan", "-f", manifests, "--bound"])
    told = json.loads(CliRunner().invoke(cli, ["plan", "-f", manifests, "-o", "json"]).stdout)

    assert "Ways to plan that were tried\nPLANNER" in drawn.output
    best = min(each["hourly"] for each in told["attempts"] if each["outcome"] == "complete")
    assert best == pytest.approx(told["summary"]["hourly"])
    assert "first-fit" in [each["planner"].partition(",")[0] for each in told["attempts"]]


@pytest.mark.parametrize(
    ("pods", "at_terminal", "told"), [(5_000, True, True), (5_000, False, False), (5, True, False)]
)
def test_who_waits_at_a_terminal_for_many_pods_sees_what_is_tried(
    pods: int, at_terminal: bool, told: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: at_terminal)

    listener = planned.Progress(pods)
    listener.trying("rounded")
    listener.close()

    said = capsys.readouterr().err
    assert ("planning for 5000 pods: rounded" in said) is told
    assert not said or said.endswith("\r\x1b[K")  # and leaves no trace


def test_what_is_shown_meanwhile_goes_also_when_planning_breaks_off(
    manifests: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []
    monkeypatch.setattr(planned.Progress, "close", lambda listener: closed.append(True))

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(planreport, "schedule", interrupted)

    CliRunner().invoke(cli, ["plan", "-f", manifests])

    assert closed
