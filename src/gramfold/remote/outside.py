"""What of an error leaves a site. Its own words do: they hold its configuration's settings and what the message asked for. Of all
else only what is known to quote no data: a cell, a label or a path that an error names stays in the site's own log, which has the
whole of it under the same code.
"""

import re
from collections.abc import Collection

from gramfold.errors import GramfoldError
from gramfold.remote.messages import one_line


class SiteError(GramfoldError):
    """A site's configuration or state does not let it answer.

    In the site's own words: no value of its data and no path of its machine is in them. `log`: what the site's own log has in
    their place.
    """

    code = "site"

    def __init__(self, words: str, log: str = "") -> None:
        super().__init__(words)
        self.log = log or words


class PolicyError(SiteError):
    """A site's policy does not allow what the run asks of it."""

    code = "site.policy"


SPEAKING = ("gramfold.privacy.", "gramfold.methods.registry", "gramfold.remote.policy", "gramfold.remote.secure")
"""The modules whose errors are about messages and settings alone: protocols, keys, names of methods."""
SAYABLE = tuple(
    re.compile(pattern)
    for pattern in (
        r"NaN or infinite", r"\d{1,9} numbers per sample, the others \d{1,9}", r"not among the \d{1,9} classes", r"no samples",
        r"`labels` has shape", r"not a readable \.npz file", r"no such data file", r"not a gramfold message",
        r"differ(s)? in (its|their) (feature map|class list|backbone)", r"no labels", r"sample weights",
        r"the run's task no encoder for it",
    )
)  # fmt: skip
"""What may be said of any other error, to the letter: counts of columns and classes, which the task states anyway."""


def outside(error: Exception, code: str, agreed: Collection[str] = ()) -> str:
    """An error as it may leave: `code` is that of its line in the site's own log; `agreed` are names that the server has."""
    text = str(error)
    if isinstance(error, SiteError) or (isinstance(error, GramfoldError) and _raised_in(error).startswith(SPEAKING)):
        return one_line(text)
    kind = "" if isinstance(error, GramfoldError) else f" ({type(error).__name__})"
    said = [found[0] for found in (pattern.search(text) for pattern in SAYABLE) if found]
    said += [f"column {name!r}" for name in sorted(agreed) if repr(name) in text]
    what = ", ".join(said) or f"it could not answer{kind}"
    return one_line(f"{what}; its own log has the reason, under {code}")


def inside(error: Exception) -> str:
    """An error as the site's own log has it."""
    if isinstance(error, GramfoldError):
        return one_line(getattr(error, "log", str(error)), 2000)
    return one_line(f"{type(error).__name__}: {error}", 2000)


def _raised_in(error: Exception) -> str:
    """The module that raised it."""
    trace, module = error.__traceback__, ""
    while trace is not None:
        module, trace = str(trace.tb_frame.f_globals.get("__name__", "")), trace.tb_next
    return module
