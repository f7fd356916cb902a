"""Errors and warnings that a user can act on."""


class GramfoldError(Exception):
    """Invalid input from the caller; the message says what, where and what to do."""


class InputError(GramfoldError, ValueError):
    """The same where scikit-learn's conventions ask for a ValueError."""


class NotFiniteError(GramfoldError):
    """An upload with NaN or infinity among its numbers: where it is one's own, training has diverged."""


class SharedHeadWarning(UserWarning):
    """A model that was fitted with groups was asked about samples without them; all of them got the head that groups share."""


class LearnedFeaturesWarning(UserWarning):
    """Samples were taken out of a model whose features were learned with them."""


class PrecisionWarning(UserWarning):
    """A subtraction has cancelled more digits than it should; the message says how many, and what to do."""


MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
"""What Python raises where a file's names, numbers or shapes are not what they should be; a loader says so as a GramfoldError."""


class IllConditionedWarning(UserWarning):
    """A system was too close to singular for Cholesky; the message names the fallback that solved it."""
