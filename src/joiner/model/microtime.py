"""Timestamps that the API server wants with all six digits of their microseconds, as in leases."""

from datetime import datetime


class MicroTime(datetime):
    """A timestamp that is written with microseconds even when they are zero; others are written without."""

    @classmethod
    def of(cls, moment: datetime) -> "MicroTime":
        """The same moment."""
        return cls.combine(moment.date(), moment.timetz())
