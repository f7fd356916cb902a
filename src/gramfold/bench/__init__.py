"""The papers, rerun with one command each: cells that are measured, and the tables and plots made of them."""

from gramfold.bench.frame import Bench, Cell, Options
from gramfold.bench.registry import BENCHES, open_bench
from gramfold.bench.running import contents, run_bench

__all__ = ["BENCHES", "Bench", "Cell", "Options", "contents", "open_bench", "run_bench"]
