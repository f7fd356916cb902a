"""A site's raw data: a folder of images or a table, and what makes numbers of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.backbones import Backbone, open_backbone
from gramfold.errors import RemoteError
from gramfold.extraction import load_data
from gramfold.federation import Dataset, Task
from gramfold.federation.blocks import block_codes, stratified
from gramfold.numerics import inputs, seeds
from gramfold.origin import TABLE, Origin
from gramfold.remote.policy import Policy
from gramfold.sources import CodedTable, Columns, Source, TableEncoder, TableStatistics, open_source, say_unused
from gramfold.sources.base import COLUMNS

HELD_OUT = 0.25
"""The fraction of a site's samples held out for testing, where its data has no split of its own."""


@dataclass(frozen=True)
class RawData:
    """`config` is the node's: `data`, for images and texts `backbone` (and `pooling`, `device`), and which column is what."""

    config: Mapping[str, Any]

    def _given(self, key: str) -> str | None:
        return str(self.config[key]) if self.config.get(key) else None

    @cached_property
    def backbone(self) -> Backbone | None:
        name = self._given("backbone")
        return None if name is None else open_backbone(name, self._given("pooling"), self._given("device") or "cpu")

    @property
    def site(self) -> str:
        return str(self.config.get("name", ""))

    @property
    def release_words(self) -> int:
        return Policy.read(self.config).words

    @cached_property
    def source(self) -> Source:
        names = {what: self._given(f"{what}-column") for what in ("label", "client", "path", "text", "split", "block")}
        only = tuple(name.strip() for name in (self._given("columns") or "").split(",") if name.strip())
        columns = Columns(**names, only=only, regression=bool(self.config.get("regression")))  # type: ignore[arg-type]
        source = open_source(str(self.config["data"]), columns, None if self.backbone is None else self.backbone.kind)
        return source if source.kind != COLUMNS else own_split(source, self.site)

    @property
    def is_table(self) -> bool:
        """Whether it is a table of numbers and categories, whose encoder the sites make together."""
        return self.source.kind == COLUMNS

    @cached_property
    def statistics(self) -> TableStatistics:
        """What this site says of its table: of its training rows as a whole, whatever clients the table itself names."""
        assert self.source.train is not None
        table = CodedTable(self.source, self.release_words)
        return table.statistics([np.flatnonzero(self.source.train)])

    def description(self) -> dict[str, Any]:
        """What the server must know beside shapes and classes: the backbone, or the statistics of a table's columns."""
        if self.is_table:
            return {"table": self.statistics.to_dict()}
        if self.backbone is None:
            raise RemoteError(f"{self.source.name} holds {self.source.kind}; name a `backbone` in this node's configuration")
        return {"origin": {**vars(self.backbone.origin), "options": dict(self.backbone.origin.options)}}

    def dataset(self, task: Task | None) -> Dataset:
        """The samples as numbers; a table needs the task, which holds the encoder."""
        if not self.is_table:
            if task is not None and task.origin is not None and self.backbone is not None:
                task.origin.require(self.backbone.origin, "this site's data")
            cache = self._given("cache") or Path(str(self.config.get("state-dir") or ".")) / "features"
            return load_data(self.source, self.backbone, cache=Path(cache), whole=False)
        if task is None or task.origin is None or task.origin.kind != TABLE:
            raise RemoteError("this site has a table, and the run's task no encoder for it: let the sites agree on the task")
        return load_data(self.source, encoder=TableEncoder.reopen(task.origin), whole=False)


def own_split(source: Source, site: str) -> Source:
    """A table with its training rows marked before anything is said of it: test rows have no part in that.

    The site draws them itself, the same in every run, where the table does not tell.
    """
    train = source.train
    if (train is not None and train.any() and not train.all()) or source.labels is None:
        return source if train is not None else replace(source, train=np.ones(source.n, dtype=bool))
    codes = np.zeros(source.n, dtype=np.int64) if source.regression else inputs.encode(source.labels)[0]
    marked = np.zeros(source.n, dtype=bool)
    blocks = None if source.block is None else block_codes(source.block, source.n, source.name)
    marked[stratified(codes, HELD_OUT, seeds.generator(0, f"split/{site}"), blocks)[0]] = True
    return replace(source, train=marked)


def folded_origin(described: Mapping[str, Mapping[str, Any]]) -> tuple[Origin | None, int | None]:
    """What makes numbers of all sites' samples, and how many: from the descriptions of those that say so."""
    tables = [TableStatistics.from_dict(described[name]["table"]) for name in sorted(described) if "table" in described[name]]
    if tables:
        if len(tables) < len(described):
            raise RemoteError("some sites have a table for the encoder, others features; give all the same")
        total = TableStatistics()
        for table in tables:
            total += table
        say_unused(total)
        encoder = TableEncoder.of(total)
        return encoder.origin, len(encoder.columns)
    named = {name: Origin.from_dict(site["origin"]) for name, site in sorted(described.items()) if "origin" in site}
    origins = list(named.values())
    for name, origin in named.items():
        if origin.fingerprint != origins[0].fingerprint:
            first = next(iter(named))
            raise RemoteError(f"sites {first!r} and {name!r} differ in their backbone: {origins[0]} and {origin}; use one")
    return (origins[0], None) if origins else (None, None)
