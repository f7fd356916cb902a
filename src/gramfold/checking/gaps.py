"""Gaps that are written as numbers: 0, -9, 999 far from everything else."""

import numpy as np

from gramfold.checking.finding import NOTICE, SERIOUS, Finding
from gramfold.checking.units import ROWS, Sums

CODES = (0.0, -1.0, -9.0, -99.0, -999.0, -9999.0, 9.0, 99.0, 999.0, 9999.0, 99999.0, 888.0, 8888.0, 777.0, 7777.0)
FAR, APART = 3.0, 3.0
"""Spreads from the mean of all others, and steps between neighbouring numbers from the nearest."""
MANY = 0.05
"""The part of a client's rows that makes it serious."""
FEW = 3
"""Rows that a code above zero needs: a single 99 may be measured."""


def gaps(
    column: str, client: str, numbers: np.ndarray, usual: Sums | None, measured: np.ndarray
) -> tuple[list[Finding], np.ndarray]:
    """What of one client's numbers is no measurement, and the measurements. `usual`: what others have in this column;
    `measured`: the different numbers that clients have, without codes, sorted."""
    rest = numbers[~np.isin(numbers, CODES)]
    own = Sums.of(rest)
    trusted = own if own.n >= ROWS and own.spread > 0 else usual
    if trusted is None or trusted.spread <= 0:
        return [], numbers
    found, codes, step = [], [], float(np.median(np.diff(measured))) if len(measured) > 1 else 0.0
    for code in CODES:
        count = int((numbers == code).sum())
        outside = not len(rest) or code < rest.min() or code > rest.max()
        alone = float(np.abs(measured - code).min(initial=np.inf)) > APART * step
        if count < (1 if code <= 0 else FEW) or not (outside and alone) or abs(code - trusted.mean) < FAR * trusted.spread:
            continue
        share = (
            f"all {count} rows have"
            if count == len(numbers)
            else f"{count} of {len(numbers)} rows {'has' if count == 1 else 'have'}"
        )
        where = "its others" if trusted is own else "other clients"
        codes.append(code)
        found.append(
            Finding(
                "gaps",
                SERIOUS if count >= MANY * len(numbers) else NOTICE,
                f"{share} {code:g}, where {where} have {trusted.mean:.4g} ± {trusted.spread:.3g}: a gap, written as a number?",
                "leave those cells empty",
                client,
                column,
            )
        )
    return found, numbers[~np.isin(numbers, codes)]
