"""Figures that the papers print, as they print them: in per cent, of their own features. None of them is ours."""

APFL_FEATURES = "Published: CIFAR-100 on ViT-MAE-Base, other features than these"
APFL_TABLE = {
    "fedavg": (43.53, 47.75, 48.91, 39.28, 43.31, 43.28),
    "ditto": (69.80, 50.18, 43.72, 66.80, 41.32, 33.46),
    "fedala": (72.89, 52.60, 46.42, 70.63, 47.11, 38.20),
    "feddbe": (48.52, 49.96, 50.11, 43.20, 44.58, 44.41),
    "fedas": (56.70, 41.37, 37.78, 47.79, 30.73, 27.28),
    "fedpcl": (23.99, 11.33, 12.52, 25.83, 11.82, 11.13),
    "fedselect": (72.46, 49.44, 41.58, 68.44, 42.71, 34.41),
    "afl": (58.99, 58.25, 54.97, 56.96, 58.52, 55.16),
    "apfl": (80.72, 67.34, 59.72, 77.08, 64.64, 58.38),
}
"""Fan et al., arXiv 2508.10732: mean accuracy of clients' models on their own test splits; 50, then 100 clients, each with
Dirichlet 0.1, 0.5, 1.0."""
APFL_CELLS = tuple((clients, alpha) for clients in (50, 100) for alpha in (0.1, 0.5, 1.0))
APFL_OPTIMA = {"beta": "0.01", "gamma": "1 to 10", "lam": "0.3 to 0.5"}
"""The same paper's best values on CIFAR-100."""
APFL_SAVED = "at least 93.00 % of computation and 59.27 % of communication after 20 rounds, 99.30 % and 95.93 % after 200"
"""Of time and traffic against the gradient rivals, after 20 to 200 rounds."""
APFL_GAIN = "1.10 to 15.45"
"""Points over the best rival, over all its data sets (abstract)."""

FEDHIP_SAVED = {"computation": "80 %", "communication": "95 %"}
"""Tang et al., arXiv 2508.04470: against the gradient methods."""

FEDACNNL_SAVED = "83 to 99 %"
"""Gu et al., arXiv 2502.06915: of training time against gradient methods."""
PFEDACNNL_GAIN = "4 to 8 points over FedACnnL"
"""The same paper."""
ACNNL = "Published beside `five`: a centralised analytic network of five layers (Zhuang et al., Inf. Sci. 686, 2025), all images."
ACNNL_FIVE = {"mnist": 99.31, "fashion-mnist": 91.55, "cifar10": 70.49}


HEART_PFL = (
    "Published: 63.42 on CIFAR-100, 84.23 on Flowers-102, 95.67 on Caltech-101, from ImageNet's ResNet-18 after 200 rounds; "
    "other data and another network than these."
)
"""Kim & Kim, arXiv 2603.24209: personalised accuracy."""
HEART_PFL_PROTOCOL = {"rounds": 200, "epochs": 10, "akt_rounds": 30, "akt_steps": 500, "akt_batch": 2048}
"""The same paper's training."""


def apfl(method: str, clients: int, alpha: float) -> float | None:
    """The published accuracy; None where none is printed.

    >>> apfl("apfl", 50, 0.1), apfl("pace", 50, 0.1)
    (80.72, None)
    """
    printed = dict(zip(APFL_CELLS, APFL_TABLE.get(method, ()), strict=False))
    return printed.get((clients, alpha))
