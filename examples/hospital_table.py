"""A table of several hospitals, with gaps and categories: the encoder's statistics are sums over hospitals, and so is the model.

pip install "gramfold[onnx]"        (for the last lines only)
"""

import csv
from pathlib import Path

import numpy as np
import onnxruntime
from sklearn.datasets import load_breast_cancer

import gramfold as gf

rng = np.random.default_rng(0)
cancer = load_breast_cancer()
radius = cancer.data[:, 0]
hospital = np.array(["north", "east", "south"])[np.digitize(radius + rng.normal(0, 1.5, len(radius)), [12, 15])]
with Path("patients.csv").open("w", newline="") as file:
    table = csv.writer(file)
    table.writerow([*cancer.feature_names[:10], "referred by", "hospital", "diagnosis"])
    for row, site, code in zip(cancer.data, hospital, cancer.target, strict=True):
        numbers = [f"{value:.4g}" if rng.random() > 0.1 else "" for value in row[:10]]  # one cell in ten is missing
        table.writerow([*numbers, rng.choice(["doctor", "screening", "?"]), site, cancer.target_names[code]])

dataset = gf.load_data("patients.csv", label_column="diagnosis", client_column="hospital")
federation = gf.Federation.from_dataset(dataset)
result = gf.run(gf.PACE(), federation)
for name, client in result.clients.items():
    print(f"{name}: {client.accuracy:.1%} on {client.test} patients it has not seen")

gf.write_onnx(result.heads["north"], Path("north.onnx"))  # for another program, without gramfold
session = onnxruntime.InferenceSession("north.onnx", providers=["CPUExecutionProvider"])
patients = federation.clients[1].test().inputs.astype(np.float32)
_, probabilities, labels = session.run(None, {"features": patients})
apart = np.abs(probabilities - result.heads["north"].predict_proba(patients)).max()
print(f"largest difference between gramfold and onnxruntime: {apart:.1e}")
