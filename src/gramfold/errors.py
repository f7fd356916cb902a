"""Errors and warnings that a user can act on."""


class GramfoldError(Exception):
    """Invalid input from the caller; the message says what, where and what to do."""


MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
"""What Python raises where a file's names, numbers or shapes are not what they should be; a loader says so as a GramfoldError."""


class IllConditionedWarning(UserWarning):
    """A system was too close to singular for Cholesky; the message names the fallback that solved it."""
