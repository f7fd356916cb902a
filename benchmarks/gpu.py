"""The same federation on the CPU and on a CUDA device: do they agree, and how close is the device to its limit?

    python -m benchmarks.gpu

Made-up features of CIFAR-100's size (50,000 x 768, 100 classes, 100 clients), so that it needs no file. Absolute seconds.
"""

import time

import numpy as np
import torch

import gramfold as gf
from benchmarks.timing import write
from gramfold.methods import ClientData

METHODS = {
    "local": gf.Local(),
    "afl": gf.AFL(),
    "localclasses": gf.LocalClasses(),
    "fedhip": gf.FedHiP(),
    "fedhip at the server": gf.FedHiP(at="server"),
    "apfl": gf.APFL(),
    "pace": gf.PACE(features="bias+linear+fourier:200"),
    "pace, sketch": gf.PACE(features="bias+linear+fourier:400", regime="sketch"),
}


def blobs(n: int, d: int, classes: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    return (rng.standard_normal((classes, d))[y] + noise * rng.standard_normal((n, d))).astype(np.float32), y


def agreement() -> dict[str, float]:
    """The largest relative difference of any client's scores."""
    federation = gf.Federation.split(*blobs(3000, 48, 12, 2.0), clients=12, partition="dirichlet:0.3", random_state=0)
    probe = blobs(200, 48, 12, 2.0)[0]
    worst = {}
    for name, method in METHODS.items():
        on_cpu, on_gpu = gf.run(method, federation), gf.run(method, federation, device="cuda")
        pairs = [(on_cpu.heads[client].scores(probe), on_gpu.heads[client].scores(probe)) for client in on_cpu.heads]
        finite = [(a[np.isfinite(a)], b[np.isfinite(b)]) for a, b in pairs]
        worst[name] = max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in finite)
    return worst


def clock(work) -> float:
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    figures: dict = {"device": torch.cuda.get_device_name(), "agreement": agreement()}
    a = torch.randn(8192, 8192, dtype=torch.float64, device="cuda")
    figures["gemm_teraflop_per_second"] = rate = 2 * 8192**3 / clock(lambda: a @ a) / 1e12
    federation = gf.Federation.split(
        *blobs(60000, 768, 100, 4.0), clients=100, partition="dirichlet:0.1", test_size=1 / 6, random_state=0
    )
    runs = {
        "apfl, linear": gf.APFL(features="linear", refinement="linear", penalty=1.0, refinement_penalty=100.0, lam=0.5),
        "pace, linear": gf.PACE(features="bias+linear"),
        "pace, linear + 4096 Fourier": gf.PACE(features="bias+linear+fourier:4096"),
        "pace, linear + 4096 Fourier, fixed": gf.PACE(features="bias+linear+fourier:4096", penalty=50.0, weights=(14.0, 0.02)),
    }
    for name, method in runs.items():
        gf.run(method, federation, device="cuda", keep_heads=False)
        start = time.perf_counter()
        result = gf.run(method, federation, device="cuda", keep_heads=False)
        figures[name] = {"seconds": time.perf_counter() - start, "phases": dict(result.seconds), "accuracy": result.mean_accuracy}
    # the fold alone: one round of moments at m = 8961
    method = gf.AFL(features="bias+linear+fourier:8192", penalty=1.0)
    begin = method.begin(federation.task)
    parts = [client.train() for client in federation]
    parts = [type(part)(*(torch.as_tensor(array, device="cuda") for array in part)) for part in parts]

    def fold() -> None:
        total = None
        for part in parts:
            upload = method.local(ClientData("x", part), begin)
            total = upload if total is None else total.__iadd__(upload)
        total.lower_gram.sum()

    seconds, n, m = clock(fold), sum(part.n for part in parts), 8961
    figures["fold m=8961"] = {"seconds": seconds, "share_of_gemm_rate": 2 * n * m**2 / seconds / 1e12 / rate}
    figures["peak_gpu_gigabytes"] = torch.cuda.max_memory_allocated() / 1e9
    write("gpu", figures)


if __name__ == "__main__":
    main()
