"""The error of a design that cannot be read or is invalid."""

from tilewright.errors import InputError

__all__ = ["DesignError"]


class DesignError(InputError):
    """A design file, or a flag that states a part of a design, cannot be used; the message names the key."""
