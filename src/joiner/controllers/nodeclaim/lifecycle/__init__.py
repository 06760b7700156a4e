"""`nodeclaim.lifecycle`: a claim from its first day to its last. One step a file, one controller that takes them in turn."""

from joiner.controllers.nodeclaim.lifecycle.controller import Lifecycle
from joiner.controllers.nodeclaim.lifecycle.draft import RegistrationOutcomes

__all__ = ["Lifecycle", "RegistrationOutcomes"]
