"""Errors and warnings that a user can act on."""


class GramfoldError(Exception):
    """Invalid input from the caller; the message says what, where and what to do."""


class IllConditionedWarning(UserWarning):
    """A system was too close to singular for Cholesky; the message names the fallback that solved it."""
