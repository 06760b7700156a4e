"""Builds the programs of a control plane from published Go modules, once for each user and version.

Three Go modules are written into the cache: one for etcd, whose ready-made main is not published with its newest releases; one
for Kubernetes and kwok together, which share nearly all of their packages; one for helm. A lock keeps two builds apart, and a
program appears under its name only when it is whole.
"""

import fcntl
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile

from tools.controlplane.toolchain import (
    ETCD,
    HELM,
    KARPENTER,
    KUBERNETES,
    KWOK,
    CannotBuild,
    end_of,
    environment,
    find_go,
    folder,
    run_go,
)

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
PACKAGES = {
    "etcd": "joiner.example/etcd",
    **{
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    },
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "helm": "helm.sh/helm/v3/cmd/helm",
    "karpenter": "sigs.k8s.io/karpenter/kwok",
}
TOOLCHAIN = {"karpenter": "auto"}
"""What may need a newer Go than the one at hand, which then comes as a module itself."""
STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
"""What kwok does to nodes and pods, in files of its module."""
GO_LINE = "go 1.26.0"
ETCD_MAIN = """package main

import (
\t"os"

\t"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""

Say = Callable[[str], None]


def to_stderr(text: str) -> None:
    """Tell the person at the terminal."""
    print(text, file=sys.stderr, flush=True)


def binaries(*programs: str, say: Say = to_stderr) -> Path:
    """The folder with these programs, built first if they are not there. Raises CannotBuild."""
    wanted, place = programs or CONTROL_PLANE, folder()
    if _missing(place, wanted):
        place.mkdir(parents=True, exist_ok=True)
        with _alone(place / "lock", say):
            if missing := _missing(place, wanted):
                _build(place, missing, say)
    return place


def _missing(place: Path, programs: tuple[str, ...]) -> list[str]:
    stages = [] if "kwok" not in programs or (place / "stages").is_dir() else ["kwok"]
    return [name for name in programs if not (place / name).exists() or name in stages]


@contextmanager
def _alone(path: Path, say: Say) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another process that builds the same programs …")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(place: Path, programs: list[str], say: Say) -> None:
    go = find_go()
    say(f"Building {', '.join(programs)} into {place}: once for these versions,")
    say("about nine minutes on two cores for all of a control plane …")
    start = time.monotonic()
    modules = {"etcd": _etcd_module, "helm": _helm_module, "karpenter": _karpenter_module}
    for name in programs:
        where = place / "modules" / (name if name in modules else "kubernetes")
        if not (where / "fetched").exists():
            say(f"  fetching the modules of {name} …")
            where.mkdir(parents=True, exist_ok=True)
            modules.get(name, _kubernetes_module)(go, where)
            (where / "fetched").touch()
        _compile(go, where, place, name, say)
        if name == "kwok":
            _copy_stages(go, where, place)
    say(f"Built in {time.monotonic() - start:.0f} s.")


def _compile(go: str, where: Path, place: Path, name: str, say: Say) -> None:
    unfinished = place / f"{name}.unfinished-{os.getpid()}"
    flags = ["-v", "-ldflags", _linker_flags(name), "-o", str(unfinished), PACKAGES[name]]
    start, told, compiled, lines = time.monotonic(), 0.0, 0, [""]
    with subprocess.Popen(
        [go, "build", *flags],
        cwd=where,
        env=environment(TOOLCHAIN.get(name, "local")),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:  # a line for each package
                compiled, lines = compiled + 1, [*lines[-20:], line]
                if time.monotonic() - told > 10:
                    told = time.monotonic()
                    say(f"  {name}: {compiled:4d} packages compiled after {told - start:.0f} s")
        except BaseException:
            process.kill()
            unfinished.unlink(missing_ok=True)
            raise
    if process.returncode:
        raise CannotBuild(f"{name} cannot be built: {end_of(''.join(lines))}")
    unfinished.rename(place / name)
    say(f"  {name}: done after {time.monotonic() - start:.0f} s")


def _linker_flags(name: str) -> str:
    """Without symbols. Kubernetes is told its version: it would call itself v0.0.0, and clients look at the minor version."""
    if not PACKAGES[name].startswith("k8s.io/"):
        return "-s -w"
    variable, minor = "k8s.io/component-base/version", KUBERNETES.split(".")[1]
    stamps = {"gitVersion": KUBERNETES, "gitMajor": "1", "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X {variable}.{key}={value}" for key, value in stamps.items())])


def _copy_stages(go: str, where: Path, place: Path) -> None:
    module = Path(run_go(go, ["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"], where).strip())
    unfinished = place / f"stages.unfinished-{os.getpid()}"
    unfinished.mkdir(exist_ok=True)
    for stage in STAGES:
        copyfile(module / "kustomize" / "stage" / stage, unfinished / Path(stage).name)
    if not (place / "stages").is_dir():
        unfinished.rename(place / "stages")


def _etcd_module(go: str, where: Path) -> None:
    (where / "go.mod").write_text(f"module {PACKAGES['etcd']}\n\n{GO_LINE}\n")
    (where / "main.go").write_text(ETCD_MAIN)
    run_go(go, ["get", f"go.etcd.io/etcd/server/v3@{ETCD}"], where)
    run_go(go, ["mod", "tidy"], where)


def _kubernetes_module(go: str, where: Path) -> None:
    programs = [package for package in PACKAGES.values() if package.startswith(("k8s.io/", "sigs.k8s.io/kwok"))]
    requirements = {"k8s.io/kubernetes": KUBERNETES, "sigs.k8s.io/kwok": KWOK}
    _tools_module(go, where, "joiner.example/kubernetes", requirements, programs)


def _helm_module(go: str, where: Path) -> None:
    _tools_module(go, where, "joiner.example/helm", {"helm.sh/helm/v3": HELM}, [PACKAGES["helm"]])


def _karpenter_module(go: str, where: Path) -> None:
    (where / "go.mod").write_text(f"module joiner.example/karpenter\n\n{GO_LINE}\n")
    (where / "tools.go").write_text(f'//go:build tools\n\npackage tools\n\nimport _ "{PACKAGES["karpenter"]}"\n')
    for command in (["get", f"sigs.k8s.io/karpenter@{KARPENTER}"], ["mod", "tidy"]):
        run_go(go, command, where, TOOLCHAIN["karpenter"])


def _tools_module(go: str, where: Path, name: str, requirements: dict[str, str], programs: list[str]) -> None:
    """A module whose only purpose is that these programs are built in it."""
    (where / "go.mod").write_text(f"module {name}\n\n{GO_LINE}\n")
    lines = [
        f"module {name}",
        "",
        GO_LINE,
        "",
        *(f"require {module} {version}" for module, version in requirements.items()),
    ]
    lines += [f"replace {module} => {module} {_staging_version()}" for module in _staging_modules(go, where)]
    imports = "\n".join(f'\t_ "{program}"' for program in programs)
    (where / "go.mod").write_text("\n".join(lines) + "\n")
    (where / "tools.go").write_text(f"//go:build tools\n\npackage tools\n\nimport (\n{imports}\n)\n")
    run_go(go, ["mod", "tidy"], where)


def _staging_version() -> str:
    return KUBERNETES.replace("v1.", "v0.", 1)


def _staging_modules(go: str, where: Path) -> list[str]:
    """The modules that k8s.io/kubernetes requires as v0.0.0: each has to be replaced by the version it was published as."""
    told = run_go(go, ["mod", "download", "-json", f"k8s.io/kubernetes@{KUBERNETES}"], where)
    found = re.search(r'"GoMod": "(.*)"', told)
    if found is None:
        raise CannotBuild(f"the module k8s.io/kubernetes {KUBERNETES} has no go.mod")
    text = Path(found[1]).read_text(encoding="utf-8")
    return sorted(set(re.findall(r"^\s*(k8s\.io/\S+) v0\.0\.0(?:\s|$)", text, re.MULTILINE)))
