"""What learning takes for granted before it has seen a sample; each with its unit and the script that defends it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rules:
    """Numbers that nobody chooses in a run."""

    unseen: float = 0.35
    """The share of samples that is held out of the metric: estimates on a third are as good as on all, and the metric loses
    nothing (`learned.py`)."""
    all_outputs: int = 10
    """Outputs up to which gradients are summed over all of them; beyond, one random combination for every sample does as well
    (`learned.py`)."""
    counted: int = 256
    """Columns up to which they are counted at once, should they be a table's; of more, linear heads tell first if they may be
    (derived: counts of more cost more bytes than moments)."""
    spreads: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: {"rows": (0.1,), "columns": (0.1, 0.4, 1.6)})
    """Variances of the pilots' angles that are tried, in squares of radians (`learned.py`, `more_tables.py`)."""
    trial: float = 0.25
    """That of rows of one length without a metric (`every_data.py`)."""
    rows_by_pilot: float = 0.7
    """Of columns that somebody has standardised, rows of one length must be off by less than this part of what columns are. Rows
    cannot be wild, which squared errors reward more than the heads do that come of them (`binary.py`)."""
    columns_by_lines: float = 0.95
    """The same the other way round, of linear heads, before any column is counted: features of a backbone are level, and counting
    costs bytes (`every_data.py`)."""
    linear_metric: int = 5000
    """Samples from which on rows of one length are better in a linear head's metric than without any (`every_data.py`)."""
    shrinkage: float = 1.0
    """Penalty of the head whose metric is taken, for rows of one length, in units of the features' mean squared length: far more
    than predicts best. What is left are directions that the labels are sure of (`learned.py`)."""
    longest: float = 2.0
    """The square of a sample's gradient, at most, in units of what it would be on average were inputs normally distributed: no
    sample, and nobody who lies about one, says much more about the metric than others (`liar.py`)."""
    normal: int = 256
    """Made-up inputs that tell that average (derived: to 6 %)."""
    pairs: float = 0.5
    """The part of a table's features that is of two columns at a time (`ablation.py`) ..."""
    paired: float = 1.2
    """... and their frequencies, in units of the columns' scales (`more_tables.py`)."""


RULES = Rules()
