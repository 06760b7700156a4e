"""Manifests, from text to JSON-like data and back: YAML read the way Kubernetes reads it, and never trusted.

A manifest is text from a user. Whatever it holds, reading ends with documents and typed problems: nesting and alias
expansion are counted on the event stream, before anything is built, so neither can run away with memory or the stack.
No files here: text in, values out.
"""

from joiner.yamldoc.document import Document, Loaded, YamlProblem
from joiner.yamldoc.load import documents
from joiner.yamldoc.scalars import Number, plain
from joiner.yamldoc.write import dump

__all__ = ["Document", "Loaded", "Number", "YamlProblem", "documents", "dump", "plain"]
