"""Clients, federations of them, and the ways to cut one data set into many."""

from gramfold.federation.blocks import stratified
from gramfold.federation.client import Client, Samples, Task
from gramfold.federation.datasets import Dataset, digits, digits_as_images, load_dataset, load_npz
from gramfold.federation.federation import Federation

__all__ = [
    "Client", "Dataset", "Federation", "Samples", "Task", "digits", "digits_as_images", "load_dataset", "load_npz", "stratified",
]  # fmt: skip
