"""How clients differ, learned in rounds before the moments: which of them resemble each other, and which directions their own
functions depend on, and how far their offsets and slopes lie apart.

    client   moments of [1, x]; its own kernel ridge, and what that depends on (`personal`)
    server   what every class looks like on average, or a linear fit; the metric so far
    client   its point: the mean of its samples less that, whitened, in a slot drawn by lot (`groups`); its kernel ridge again
    server   groups of the points, the metric: or that there is nothing to find

Sums only, of numbers far fewer than the moments'. A client then finds its group by itself, as can one that comes late; moments
are folded group by group, and its shared model is the one in which its group's samples count for more, where left-out samples of
the group are likelier by it.
"""

from gramfold.methods.differences.found import Found
from gramfold.methods.differences.groups import Groups, Summary
from gramfold.methods.differences.method import Differs, groups_of
from gramfold.methods.differences.phase import Differing, Plan

__all__ = ["Differing", "Differs", "Found", "Groups", "Plan", "Summary", "groups_of"]
