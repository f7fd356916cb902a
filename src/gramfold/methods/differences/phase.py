"""The rounds before the moments in which it is learned how clients differ: two, of small sums."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramfold.features import Bias, Chain, Concat, Linear, Map, MetricMap, Normalize, Projection, draw
from gramfold.features.metric import PLAIN
from gramfold.methods.differences import effects, groups, personal
from gramfold.methods.differences.effects import Asking, Effects
from gramfold.methods.differences.found import Found
from gramfold.methods.differences.groups import Groups, Summary
from gramfold.methods.differences.personal import MOST_COLUMNS, Personal
from gramfold.methods.learning import seen
from gramfold.methods.learning.client import TOOK_PART
from gramfold.methods.phases import Phase
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import Space, counting
from gramfold.uploads import NamedSums

ROUNDS = 4
"""At most: two for groups, and passes of the personal metric as long as these move it."""


@dataclass(frozen=True)
class Plan:
    """What is to be found out: groups, unless they are `given` or not wanted, and the personal metric."""

    groups: bool = True
    personal: bool = True
    given: Groups | None = None

    @property
    def rounds(self) -> int:
        return ROUNDS if self.groups or self.personal else 0

    def begin(self, start: Any, seed: int) -> "Differing | Found":
        """The first round; what is found already, where nothing is to be asked."""
        space: Space = start.space
        if getattr(start, "offsets", None) is not None and space.outputs is not None:
            space = replace(space, outputs=space.outputs // 2)  # targets are folded twice; asked are those as they are
        columns = space.map.columns if isinstance(space.map, MetricMap) else None
        wanted = self.personal and columns is not None and space.map.inputs <= MOST_COLUMNS
        grouping = self.groups and self.given is None
        if not wanted and not grouping:
            return Found(self.given)
        begun, plain = Personal.begin(space.map.inputs) if wanted else None, _plain(space.map, seed)
        few = wanted and space.labels is None and space.map.inputs <= effects.MOST_COLUMNS
        varying = Asking.begin(plain, int(space.outputs or 1)) if few else None
        return Differing(start, seed, space, grouping, begun, plain, None, self.given, varying=varying)


@dataclass(frozen=True)
class Differing(Phase, kind="differences"):
    """What is asked in one round."""

    space: Space
    grouping: bool
    personal: Personal | None
    plain: Map | None = None
    """To [1, x], x being comparable between clients."""
    summary: Summary | None = None
    found: Groups | None = None
    """Groups, once they are; or those that were given."""
    metric: Found | None = None
    """The personal metric, once it is learned."""
    rounds: int = 0
    """Those that are behind."""
    varying: Asking | None = None
    effects: Effects | None = None
    """How far clients differ: what is asked, and what was found so far."""

    # --- the client ---

    def local(self, client: ClientData) -> NamedSums:
        train, classes = counting(client), self.classes
        parts: dict[str, Any] = {}
        if self.grouping and self.plain is not None:
            asked = groups.sums(self.plain, train, classes) if self.summary is None else self.summary.upload(train)
            parts |= asked._parts
        if self.personal is not None:
            assert isinstance(self.space.map, MetricMap)
            client.memory[TOOK_PART] = np.ones(1)
            told = self.personal.upload(self.space.map, train.take(np.flatnonzero(seen(train))), classes)
            parts |= told._parts
        if self.varying is not None:
            parts |= self.varying.upload(train)._parts
        return NamedSums(parts)

    @property
    def classes(self) -> int | None:
        return None if self.space.labels is None else len(self.space.labels)

    # --- the server ---

    def after(self, total: NamedSums) -> "Differing | Found":
        """What is asked next, or what was found."""
        after = replace(self, summary=None, grouping=False, rounds=self.rounds + 1)
        if self.summary is not None:
            after = replace(after, found=self.summary.groups(total))
        elif self.grouping and self.plain is not None:
            summary = Summary.of(self.plain, total, self.space.classification, self.seed)
            after = replace(after, summary=summary, grouping=True)
        if self.varying is not None:
            varying, found_so_far = self.varying.after(total)
            after = replace(after, varying=varying if after.rounds < ROUNDS else None, effects=found_so_far)
        found = Found()
        if self.personal is not None:
            assert isinstance(self.space.map, MetricMap)
            following = self.personal.after(total)
            if following is not None and not following.settled and after.rounds < ROUNDS:
                return replace(after, personal=following)
            best = following or self.personal
            if best.gain > 0:
                _, within, _, n = personal.read(total)
                found = best.found(within, n, self.space.map, self.seed)
            after = replace(after, personal=None, metric=found)
        if after.summary is not None or after.varying is not None:
            return after
        return replace(after.metric or Found(), groups=after.found, effects=after.effects)

    # --- what comes from elsewhere ---

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        parts: dict[str, tuple[int, ...]] = {}
        if self.grouping and self.plain is not None:
            outputs = self.classes if self.classes is not None else int(self.space.outputs or 1)
            first = self.summary is None
            parts |= groups.shapes(self.plain, outputs) if first else {groups.POINTS: self.summary.shape}  # type: ignore[union-attr]
        if self.varying is not None:
            parts |= self.varying.shapes
        return parts | (self.personal.shapes if self.personal is not None else {})

    def check(self, upload: Any) -> None:
        super().check(upload)
        if self.summary is not None:
            groups.check_points(upload)
        elif self.grouping:
            groups.check_sums(upload)
        if self.personal is not None:
            personal.check_said(upload)
        if self.varying is not None:
            effects.check_effects(upload)


def _plain(map: Map, seed: int) -> Map:
    """[1, x] of inputs as a map makes them comparable: standardised columns, or rows of one length. Of wide ones random
    directions in place of x: what is asked of them stays a fraction of the moments."""
    x = Linear() if map.inputs <= groups.WIDE else Projection(groups.WIDE, "identity")
    if isinstance(map, MetricMap) and map.columns is not None:
        ends = {key: value for key, value in map.description.items() if key not in ("kind", PLAIN, "blocks")}
        straight = draw(Concat([Bias(), x]), map.inputs, seed, "differences/plain")
        return MetricMap(
            {PLAIN: straight.description, "blocks": [], **ends}, dict(zip(("centre", "scale"), map.columns, strict=True))
        )
    return draw(Concat([Bias(), Chain([Normalize(), x])]), map.inputs, seed, "differences/plain")
