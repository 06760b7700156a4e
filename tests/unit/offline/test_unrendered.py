"""Templates of Helm charts and files of kustomize: named with what to do, an error where they were asked for by name."""

from pathlib import Path

import pytest

from joiner.offline import files

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
TEMPLATE = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n  {{- if .Values.a }}\n  {{- end }}\n"
)
FILES = {
    "template.yaml": (TEMPLATE, "is a template of a Helm chart"),
    "quoted.yaml": (OBJECT.replace("name: a", 'name: "{{ .Release.Name }}"'), "is a template of a Helm chart"),
    "kustomization.yaml": ("resources: [a.yaml]\n", "is for kustomize"),
    "patch.yaml": ("- {op: replace, path: /spec/replicas, value: 3}\n", "is a patch of kustomize"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_named_and_is_no_manifest_yet_is_an_error_that_says_what_to_do(
    name: str, tmp_path: Path
) -> None:
    text, said = FILES[name]
    (tmp_path / name).write_text(text)

    (problem,) = files.read([str(tmp_path / name)]).problems

    assert said in str(problem)
    assert "helm template" in str(problem) or "kustomize build" in str(problem)


def test_in_a_folder_they_are_passed_over_with_a_line_for_each_reason(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(OBJECT)
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: a\n")
    (tmp_path / "values.yaml").write_text("replicas: 1\n")
    for number in range(6):
        (tmp_path / f"t{number}.yaml").write_text(TEMPLATE)

    found = files.read([str(tmp_path)])

    assert not found.problems
    assert [item.data["metadata"]["name"] for item in found.objects] == ["a"]
    assert len(found.notes) == 2
    assert "belongs to a Helm chart; render the chart first" in found.notes[0]
    assert f"{tmp_path}/t2.yaml and 3 more files: passed over: is a template of a Helm chart" in found.notes[1]


@pytest.mark.parametrize(
    "text",
    [
        OBJECT + 'data: {rule: "{{ $labels.instance }} is down", loop: "{{ .Values.x }}"}\n',
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {workflow: '{{workflow.name}}'}\n",
    ],
)
def test_braces_in_other_texts_mean_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)

    found = files.read([str(tmp_path / "a.yaml")])

    assert (len(found.objects), found.problems) == (1, [])


def test_broken_yaml_without_templates_is_still_told_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: b: c")

    assert "Helm" not in str(files.read([str(tmp_path / "a.yaml")]).problems[0])
