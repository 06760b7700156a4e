"""Write the CRDs of the chart from the model, or with --check say whether they are current.

python tools/gen_crds.py [--check]
"""

import sys
from pathlib import Path

from joiner.admission.crd import crds
from joiner.admission.kinds import CORE_KINDS
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.kwok.nodeclass import KWOKNodeClass

FOLDER = Path(__file__).parent.parent / "charts" / "joiner-crds" / "templates"


def wanted() -> dict[str, str]:
    """File name to content, for every file that belongs into the folder."""
    return crds(CORE_KINDS.plus(KWOKNodeClass, EC2NodeClass))


def present() -> dict[str, str]:
    """File name to content, for every file that is in the folder."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.yaml"))}


def write() -> None:
    """Make the folder hold exactly what is wanted."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    files = wanted()
    for stray in present().keys() - files.keys():
        (FOLDER / stray).unlink()
    for name, text in files.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Write, or check; the exit code says whether all is well."""
    if arguments == ["--check"]:
        current = wanted() == present()
        if not current:
            print("the CRDs differ from the model; run: python tools/gen_crds.py", file=sys.stderr)
        return 0 if current else 1
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
