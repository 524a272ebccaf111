"""What can go wrong, one class for each cause."""

from __future__ import annotations


class GraftError(Exception):
    """Says what happened, what was expected, what came, and the remedy."""

    def __init__(
        self,
        message: str,
        *,
        expected: str | None = None,
        received: str | None = None,
        remedy: str | None = None,
    ) -> None:
        parts = [message]
        if expected:
            parts.append(f"Expected: {expected}")
        if received:
            parts.append(f"Received: {received}")
        if remedy:
            parts.append(f"Remedy: {remedy}")
        super().__init__("\n".join(parts))


class UnknownReleaseError(GraftError):
    """The release is not in the table."""


class UnknownPartError(GraftError):
    """The overlay has no part of that name."""


class HashMismatchError(GraftError):
    """Bytes are not the ones that were pinned."""


class NotFoundError(GraftError):
    """The upstream wheel could not be obtained."""


class MissingTargetError(GraftError):
    """The overlay holds a file or definition that upstream does not have."""


class NotReviewedError(GraftError):
    """Upstream carries a body that nobody has reviewed."""


class ParseError(GraftError):
    """LibCST cannot parse a module."""


class OverlayError(GraftError):
    """An overlay file breaks the overlay's rules."""


class OverlappingRangesError(OverlayError):
    """Two bodies of one name serve the same release."""


class CheckoutError(GraftError):
    """The checkout is not one that the overlay can be applied to."""
