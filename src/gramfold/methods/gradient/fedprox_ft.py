"""FedProx-FT: FedProx, then every client fine-tunes the final model on its own data, without the proximal term."""

from dataclasses import dataclass
from typing import ClassVar

from gramfold.methods.gradient.fedavg_ft import FedAvgFT
from gramfold.methods.gradient.fedprox import FedProx


@dataclass(frozen=True)
class FedProxFT(FedAvgFT, FedProx):
    """`finetune_epochs`: how long each client trains the final model on its own cross-entropy."""

    name: ClassVar[str] = "fedprox-ft"
    summary: ClassVar[str] = "FedProx, then each client fine-tunes the final model"
