"""Errors and warnings that a user can act on. An error's class says what it is about, and has a short code for programs."""


class GramfoldError(Exception):
    """Something that the caller can mend: the message is one line that says what is wrong, where, and what to do."""

    code = "other"

    def __init__(self, message: str = "", *, code: str = "") -> None:
        super().__init__(message)
        if code:
            self.code = code


def shortened(value: object, most: int = 60) -> str:
    """A value as an error's line has room for it; "none" where there is nothing."""
    text = "none" if value in (None, "") else str(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


# --- data ---


class FileError(GramfoldError):
    """A file or folder is missing, in the way, damaged, of a newer version, or cannot be read or written."""

    code = "file"


class SamplesError(GramfoldError):
    """Samples are not numbers, not finite, too few, or of another shape than the others."""

    code = "data.samples"


class ColumnsError(GramfoldError):
    """A table's column is missing, named twice, or holds something else than it should."""

    code = "data.columns"


class LabelsError(GramfoldError):
    """Labels or target values are missing, of one class alone, not among the known classes, or of the wrong kind."""

    code = "data.labels"


class ClientsError(GramfoldError):
    """A client has no samples, is named twice, or was given in another form than the others."""

    code = "data.clients"


class PartitionError(GramfoldError):
    """A data set cannot be cut into clients, or into training and test samples, in the way that was asked for."""

    code = "data.partition"


class OriginError(GramfoldError):
    """Features were made by another backbone or encoder than a head or a federation was made for."""

    code = "data.origin"


class BackboneError(GramfoldError):
    """A backbone is unknown, or failed on the samples that it was given."""

    code = "backbone"


class InputError(GramfoldError, ValueError):
    """An argument of an estimator is invalid: the ValueError that scikit-learn's conventions ask for."""

    code = "estimator"


# --- runs ---


class OptionError(GramfoldError):
    """An option is invalid, or cannot be used together with another one or with this engine."""

    code = "option"


class TooLargeError(GramfoldError):
    """What was asked for needs more memory than there is."""

    code = "memory"


class InstallError(GramfoldError):
    """A package is missing that only one of gramfold's extras installs."""

    code = "install"


class MethodError(GramfoldError):
    """A method is unknown, a parameter of it is invalid, or it does not do what was asked for."""

    code = "method"


class FeaturesError(GramfoldError):
    """A feature map or a network is unknown, invalid, or made for other inputs."""

    code = "features"


class MomentsError(GramfoldError):
    """Moments do not belong together, or samples are to be taken out that are not in them."""

    code = "moments"


class NotFiniteError(GramfoldError):
    """An upload has NaN or infinity among its numbers: where it is one's own, training has diverged."""

    code = "diverged"


class HeadError(GramfoldError):
    """A file holds no sound head, or the head does not do what was asked of it."""

    code = "head"


class ResultError(GramfoldError):
    """A result does not hold what is needed to change it, or what was asked for is not in it."""

    code = "result"


class PartsError(GramfoldError):
    """Task files and part files of a run as files do not belong together, or come in the wrong order."""

    code = "parts"


class ServingError(GramfoldError):
    """A question to a served head is not one that it answers, or the server cannot start."""

    code = "serving"


# --- networks and privacy ---


class MessageError(GramfoldError):
    """A message is damaged, or not what was asked for."""

    code = "message"


class RemoteError(GramfoldError):
    """Too few sites take part in a run over a network, or a site's answer does not fit the run."""

    code = "remote"


class NetworkError(GramfoldError):
    """A process of a Flower network, or a Dask cluster, did not start, stopped, or refused a command."""

    code = "network"


class ReleaseError(GramfoldError):
    """A sum is not released, because it would tell too much of a single site."""

    code = "release"


class SecureSumError(GramfoldError):
    """A secure sum was not agreed on, or somebody left or lied while it was made."""

    code = "secure"


class PrivacyError(GramfoldError):
    """Differential privacy cannot be promised for this run."""

    code = "privacy"


# --- warnings ---


class SharedHeadWarning(UserWarning):
    """A model that was fitted with groups was asked about samples without them; all of them got the head that groups share."""


class LearnedFeaturesWarning(UserWarning):
    """Samples were taken out of a model whose features were learned with them."""


class PrecisionWarning(UserWarning):
    """A subtraction has cancelled more digits than it should; the message says how many, and what to do."""


class IllConditionedWarning(UserWarning):
    """A system was too close to singular for Cholesky; the message names the fallback that solved it."""


MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
"""What Python raises where a file's names, numbers or shapes are not what they should be; a loader says so as a GramfoldError."""
