"""The way out: data to YAML that Kubernetes reads back as the same data."""

from typing import Any

import yaml

from joiner.yamldoc.scalars import Number, resolve


def dump(*objects: Any) -> str:
    """YAML that Kubernetes and `documents` read back as the same data; several objects become several documents."""
    return yaml.dump_all(
        objects, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=4096, explicit_start=len(objects) > 1
    )


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes every text that Kubernetes would read as something else, and never writes aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write shared data out each time."""
        return True

    def text(self, text: str) -> Any:
        """A string: a block when it has several lines, quoted when the bare word would mean something else."""
        style = "'" if not isinstance(resolve(text), str) else "|" if "\n" in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def number(self, number: Number) -> Any:
        """A number, as it was written."""
        return self.represent_scalar("tag:yaml.org,2002:float", number.text)


_Dumper.add_representer(str, _Dumper.text)
_Dumper.add_representer(Number, _Dumper.number)
