"""Moments that the API server wants with all six digits of their microseconds, as leases have them."""

from datetime import datetime


class MicroTime(datetime):
    """A moment that is written with microseconds even when they are zero; other moments are written without."""

    @classmethod
    def of(cls, moment: datetime) -> "MicroTime":
        """The same moment."""
        return cls.combine(moment.date(), moment.timetz())
