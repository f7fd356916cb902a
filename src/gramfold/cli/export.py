"""`gramfold export`: a head for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from gramfold.cli import data as shared
from gramfold.errors import OptionError
from gramfold.heads import load_head


def export(
    head: Annotated[Path, typer.Argument(help="A head's file, such as --heads of gramfold run writes.")],
    onnx: Annotated[Path | None, typer.Option(help="Write ONNX here, for onnxruntime.", show_default=False)] = None,
    torch: Annotated[
        Path | None, typer.Option(help="Write a PyTorch program here, for torch.export.load.", show_default=False)
    ] = None,
    sklearn: Annotated[
        Path | None, typer.Option(help="Write a scikit-learn estimator here, for joblib.", show_default=False)
    ] = None,
    numpy: Annotated[
        Path | None, typer.Option(help="Write steps for NumPy alone here, an .npz for numpy_predictor.py.", show_default=False)
    ] = None,
    backbone: shared.Backbone = None,
    head_only: Annotated[bool, typer.Option("--head-only", help="Leave the backbone out of an ONNX file.")] = False,
) -> None:
    """Write a head as ONNX (with its backbone in front where that is ONNX too), as a PyTorch program, for scikit-learn, or for
    NumPy alone."""
    if onnx is torch is sklearn is numpy is None:
        raise OptionError("say what to write: --onnx FILE, --torch FILE, --sklearn FILE or --numpy FILE")
    loaded = load_head(head)
    from gramfold.export import write_numpy, write_onnx, write_sklearn, write_torch  # scikit-learn takes a second to import

    if onnx is not None:
        typer.echo(
            f"{onnx}: {write_onnx(loaded, onnx, head_only=head_only, backbone_name=backbone)} to {_what(loaded.probabilistic)}"
        )
    if torch is not None:
        write_torch(loaded, torch)
        typer.echo(f"{torch}: from features to {_what(loaded.probabilistic)}")
    if sklearn is not None:
        write_sklearn(loaded, sklearn)
        typer.echo(f"{sklearn}: an estimator; it needs gramfold where it is read")
    if numpy is not None:
        write_numpy(loaded, numpy)
        from gramfold.export import numpy_predictor

        typer.echo(f"{numpy}: from features to {_what(loaded.probabilistic)}; copy {numpy_predictor.__file__} beside it")


def _what(probabilistic: bool) -> str:
    return "probabilities" if probabilistic else "scores"
