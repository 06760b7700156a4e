"""A real Kubernetes control plane on this machine, without containers: `python -m tools.control_plane`.

`build` makes its programs, `hold` keeps one running for the tests, `try` gives one to a person, with Joiner in it.
"""

import argparse
import signal
import sys
from pathlib import Path

from tools.controlplane.binaries import CONTROL_PLANE, PACKAGES, binaries
from tools.controlplane.cluster import Refused
from tools.controlplane.manifests import install_crds
from tools.controlplane.plane import CannotStart, ControlPlane
from tools.controlplane.processes import wait_for_exit
from tools.controlplane.toolchain import CannotBuild
from tools.controlplane.tryout import tryout

READY, FAILED = "cluster.json", "failed.txt"


def hold(folder: Path, pid: int, audited: str, controllers: str, stages: list[Path]) -> int:
    """Keep a control plane with our CRDs until a process is gone; the folder tells where it is, or why there is none."""
    plane = ControlPlane(folder, audited=audited, controllers=controllers, stages=stages)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        cluster = plane.start()
        install_crds(cluster)
        cluster.write(folder / READY)
        wait_for_exit(pid)
    except (CannotBuild, CannotStart, Refused) as error:
        (folder / f"{FAILED}.unfinished").write_text(str(error), encoding="utf-8")
        (folder / f"{FAILED}.unfinished").rename(folder / FAILED)
        return 1
    finally:
        plane.stop()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.control_plane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build the programs; nothing happens when they are there")
    build.add_argument("programs", nargs="*", help=f"of {', '.join(PACKAGES)}; without: {', '.join(CONTROL_PLANE)}")
    holding = commands.add_parser("hold", help="run a control plane until a process ends")
    holding.add_argument("folder", type=Path, help="where its state goes")
    holding.add_argument("--until", type=int, required=True, metavar="PID", help="the process")
    holding.add_argument("--audited", default="", metavar="USER", help="the user whose requests are recorded")
    holding.add_argument("--controllers", default="*", help="controllers of the controller-manager")
    holding.add_argument("--stages", type=Path, action="append", default=[], help="more stages for kwok")
    trying = commands.add_parser("try", help="a cluster with Joiner in it, until Ctrl-C")
    trying.add_argument("--aws", action="store_true", help="with the AWS provider over a pretended account in EC2")
    return parser


def main() -> int:
    """Run one command."""
    arguments = _parser().parse_args()
    try:
        if arguments.command == "build":
            if unknown := sorted({*arguments.programs} - {*PACKAGES}):
                raise CannotBuild(f"{', '.join(unknown)}: choose from {', '.join(PACKAGES)}")
            print(binaries(*arguments.programs))
        elif arguments.command == "hold":
            return hold(arguments.folder, arguments.until, arguments.audited, arguments.controllers, arguments.stages)
        else:
            return tryout(aws=arguments.aws)
    except (CannotBuild, CannotStart, Refused) as error:
        print(f"There is no control plane: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
