"""The gradient methods: fairly tuned baselines. They need PyTorch to run, but not to be listed."""

from gramfold.methods.gradient.base import Gradient
from gramfold.methods.gradient.ditto import Ditto
from gramfold.methods.gradient.fedala import FedALA
from gramfold.methods.gradient.fedas import FedAS
from gramfold.methods.gradient.fedavg import FedAvg
from gramfold.methods.gradient.fedavg_ft import FedAvgFT
from gramfold.methods.gradient.feddbe import FedDBE
from gramfold.methods.gradient.fedpcl import FedPCL
from gramfold.methods.gradient.fedprox import FedProx
from gramfold.methods.gradient.fedprox_ft import FedProxFT
from gramfold.methods.gradient.fedrep import FedRep
from gramfold.methods.gradient.fedselect import FedSelect
from gramfold.methods.gradient.fedzo import FedZO
from gramfold.methods.gradient.heart_pfl import HeartPFL
from gramfold.methods.gradient.local_sgd import LocalSGD
from gramfold.methods.gradient.lp_ft import LPFT
from gramfold.methods.gradient.pfedme import PFedMe

GRADIENT: tuple[type[Gradient], ...] = (
    LocalSGD, FedAvg, FedProx, FedAvgFT, FedProxFT, Ditto, FedALA, FedDBE, FedAS, FedRep, LPFT, FedPCL, FedSelect, FedZO, PFedMe,
    HeartPFL,
)  # fmt: skip

__all__ = [
    "GRADIENT", "LPFT", "Ditto", "FedALA", "FedAS", "FedAvg", "FedAvgFT", "FedDBE", "FedPCL", "FedProx", "FedProxFT", "FedRep",
    "FedSelect", "FedZO", "Gradient", "HeartPFL", "LocalSGD", "PFedMe",
]  # fmt: skip
