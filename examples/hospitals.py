"""Data that is already apart: each site brings its own samples, and one more joins after the round."""

import numpy as np
from sklearn.datasets import load_breast_cancer

import gramfold as gf

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(0)) / X.std(0)
site = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.25, 0.5, 0.75]))  # four hospitals that see tumours of different sizes
names = ["north", "east", "south", "west"]
clients = {name: (X[site == k], y[site == k]) for k, name in enumerate(names)}
newcomer = clients.pop("west")

result = gf.run(gf.PACE(), gf.Federation.from_clients(clients, random_state=0))
for name, client in result.clients.items():
    print(
        f"{name}: {client.accuracy:.1%} on {client.test} test patients, {client.chosen['leave_one_out_accuracy']:.1%} estimated"
    )

half = len(newcomer[1]) // 2
head = result.join(newcomer[0][:half], newcomer[1][:half])
print(f"west, joining later: {np.mean(head.predict(newcomer[0][half:]) == newcomer[1][half:]):.1%}")
