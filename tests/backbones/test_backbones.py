"""Backbones: what they give, what their fingerprints cover, and what is said when one cannot be had."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from gramfold import GramfoldError
from gramfold.backbones import IMAGES, TEXTS, open_backbone, reopen
from gramfold.backbones.onnx_model import OnnxBackbone
from gramfold.backbones.packaged import PACKAGES, weights_of
from gramfold.backbones.pixels import Pixels, cubic, enlarged, read_image
from gramfold.backbones.pooling import pool_patches, pool_words
from gramfold.errors import BackboneError, OriginError
from raw_cases import pictures, write_function, write_tokens_model

SHARED = Path(__file__).parents[3] / "shared" / "data"
pytest.importorskip("PIL", reason="images need pillow")


def needs(name: str) -> None:
    try:
        weights_of(name)
    except GramfoldError as error:
        pytest.skip(str(error))


# --- images ---


def test_an_image_is_enlarged_as_torch_does():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    image = np.random.default_rng(0).integers(0, 256, (9, 13, 3)).astype(np.float32)
    theirs = torch.nn.functional.interpolate(torch.tensor(image).permute(2, 0, 1)[None], (40, 40), mode="bicubic")
    assert np.abs(enlarged(image, 40) - theirs[0].permute(1, 2, 0).clamp(0, 255).numpy()).max() < 1e-2  # of 255


@pytest.mark.parametrize("before", [1, 2, 5, 40])
def test_interpolation_keeps_a_constant(before):
    assert np.allclose(cubic(before, 40).sum(1), 1, atol=1e-6)


def test_a_photo_is_averaged_when_it_shrinks(tmp_path):
    checkers = (np.indices((400, 300)).sum(0) % 2 * 255).astype(np.uint8)
    square = Pixels(28, (0.0,) * 3, (1.0,) * 3)(np.stack([checkers] * 3, axis=2))
    assert square.shape == (3, 28, 28)
    assert np.abs(square - 0.5).max() < 0.05, "no pattern of its own"


def test_images_are_read_from_whatever_holds_them(tmp_path):
    image = read_image(pictures(1)[0][0])
    path = tmp_path / "a.png"
    image.save(path)
    grey = read_image(np.asarray(image)[..., 0])
    forms = [path, str(path), path.read_bytes(), {"bytes": path.read_bytes(), "path": None}, image, np.asarray(image) / 255.0]
    assert all(np.array_equal(np.asarray(read_image(form)), np.asarray(image)) for form in forms)
    assert grey.mode == "RGB"


# --- pooling ---


def test_pooling_takes_the_first_token_and_the_mean_of_the_others():
    tokens = np.random.default_rng(0).standard_normal((2, 5, 3))
    assert np.array_equal(pool_patches(tokens, "cls"), tokens[:, 0])
    assert np.allclose(pool_patches(tokens, "both"), np.hstack([tokens[:, 0], tokens[:, 1:].mean(1)]))
    mask = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1]])
    assert np.allclose(pool_words(tokens, mask, "mean"), [tokens[0, :2].mean(0), tokens[1].mean(0)])


# --- ONNX ---


@pytest.fixture
def tokens_file(tmp_path) -> Path:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    write_tokens_model(tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_an_onnx_model_is_cut_at_a_tensor(tokens_file):
    images, _ = pictures(5)
    cut, plain = open_backbone(f"onnx:{tokens_file}#tokens", "mean"), open_backbone(f"onnx:{tokens_file}", "mean")
    assert cut.kind == IMAGES
    assert cut(images).shape == (5, 6)
    assert plain(images).shape == (5, 2)
    assert open_backbone(f"onnx:{tokens_file}#tokens")(images).shape == (5, 12), "both by default"
    assert isinstance(cut, OnnxBackbone)
    assert len(cut.model().graph.node) == 5


def test_an_onnx_models_own_preprocessing_is_used(tokens_file):
    images, _ = pictures(2)
    usual = open_backbone(f"onnx:{tokens_file}#tokens")
    (tokens_file.parent / "preprocessor_config.json").write_text(json.dumps({"image_mean": [0.5] * 3, "image_std": [0.5] * 3}))
    own = open_backbone(f"onnx:{tokens_file}#tokens")
    assert own.fingerprint != usual.fingerprint
    assert np.abs(own(images) - usual(images)).max() > 0.01


def test_an_onnx_model_of_texts_has_its_tokenizer_beside_it(tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    helper, types = onnx.helper, onnx.TensorProto
    table = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    given = [helper.make_tensor_value_info(name, types.INT64, ["n", "words"]) for name in ("input_ids", "attention_mask")]
    found = helper.make_tensor_value_info("tokens", types.FLOAT, ["n", "words", 5])
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["tokens"], axis=0)]
    graph = helper.make_graph(nodes, "words", given, [found], [onnx.numpy_helper.from_array(table, "table")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), str(tmp_path / "m.onnx"))
    with pytest.raises(BackboneError):
        open_backbone(f"onnx:{tmp_path / 'm.onnx'}")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[PAD]": 0, "a": 1, "b": 2, "[UNK]": 3}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    backbone = open_backbone(f"onnx:{tmp_path / 'm.onnx'}")
    assert (backbone.kind, backbone.pooling) == (TEXTS, "mean")
    assert np.allclose(backbone(["a b", "b"]), [table[[1, 2]].mean(0), table[2]], atol=1e-6)


def test_fingerprints_cover_weights_tensor_and_pooling(tokens_file, tmp_path):
    name = f"onnx:{tokens_file}"
    same = open_backbone(name)
    others = [open_backbone(f"{name}#tokens"), open_backbone(name, "cls")]
    moved = tmp_path / "elsewhere" / "copy.onnx"
    moved.parent.mkdir()
    moved.write_bytes(tokens_file.read_bytes())
    assert open_backbone(f"onnx:{moved}").fingerprint == same.fingerprint
    assert len({same.fingerprint, *(other.fingerprint for other in others)}) == 3
    origin = same.origin
    assert reopen(origin).fingerprint == same.fingerprint
    write_tokens_model(tokens_file, width=7)
    with pytest.raises(OriginError):
        reopen(origin)


def test_weights_in_a_file_beside_the_model_count(tokens_file):
    import onnx

    inside = open_backbone(f"onnx:{tokens_file}")
    rows = inside(pictures(2)[0])
    model = onnx.load(str(tokens_file))
    onnx.save(model, str(tokens_file), save_as_external_data=True, location="weights.bin", size_threshold=0)
    outside = open_backbone(f"onnx:{tokens_file}")
    assert np.array_equal(outside(pictures(2)[0]), rows)
    weights = bytearray((tokens_file.parent / "weights.bin").read_bytes())
    weights[3] ^= 64
    (tokens_file.parent / "weights.bin").write_bytes(weights)
    assert open_backbone(f"onnx:{tokens_file}").fingerprint != outside.fingerprint


# --- one's own ---


def test_a_function_is_a_backbone(tmp_path):
    path = write_function(tmp_path)
    colours, letters = open_backbone(f"python:{path}:colours"), open_backbone(f"python:{path}:letters")
    assert (colours.kind, letters.kind) == (IMAGES, TEXTS)
    assert colours(pictures(4)[0]).shape == (4, 54)
    assert letters(["abba", ""]).tolist()[0][:2] == [2, 2]
    assert colours.fingerprint != letters.fingerprint


def test_a_module_of_the_working_folder_is_found(tmp_path, monkeypatch):
    write_function(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert open_backbone("python:own_backbone:letters")(["b"])[0, 1] == 1


# --- Hugging Face, with tiny models ---

SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
SEEING = {**SMALL, "image_size": 32, "patch_size": 8}


@pytest.fixture
def transformers():
    pytest.importorskip("torch", reason="torch is not installed")
    return pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.mark.parametrize("name", ["ViT", "ViTMAE", "Dinov2", "CLIP"])
def test_a_vision_model_from_a_folder(name, transformers, tmp_path):
    kind = getattr(transformers, f"{name}Config")
    words = {**SMALL, "vocab_size": 50}
    config = kind(vision_config=SEEING, text_config=words) if name == "CLIP" else kind(**SEEING)
    getattr(transformers, f"{name}Model")(config).save_pretrained(tmp_path)
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    backbone = open_backbone(f"hf:{tmp_path}")
    images = pictures(3)[0]
    rows = backbone(images)
    assert backbone.kind == IMAGES
    assert rows.shape == (3, 32), "class token and mean of patches"
    assert np.abs(rows - backbone(images)).max() == 0, "the same every time, also for a masked autoencoder"
    assert open_backbone(f"hf:{tmp_path}", "cls")(images).shape == (3, 16)
    assert open_backbone(f"hf:{tmp_path}").fingerprint == backbone.fingerprint


def test_a_text_model_from_a_folder(transformers, tmp_path):
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "lost", "card", "my", "is", "hello"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    transformers.BertModel(transformers.BertConfig(**SMALL, vocab_size=len(vocabulary))).save_pretrained(tmp_path)
    backbone = open_backbone(f"hf:{tmp_path}")
    rows = backbone(["my card is lost", "hello", "hello hello hello hello"])
    assert (backbone.kind, backbone.pooling, rows.shape) == (TEXTS, "mean", (3, 16))
    assert np.abs(backbone(["hello"])[0] - rows[1]).max() < 1e-5, "padding counts for nothing"


# --- those that come as packages ---


@pytest.mark.data
@pytest.mark.slow
def test_dinov2s_gives_the_shared_features():
    """The first 24 of them here; all 200 are in benchmarks/front_door.py."""
    needs("dinov2s")
    if not (SHARED / "cifar100-20classes-images.npz").exists():
        pytest.skip("the development data is not here")
    with np.load(SHARED / "cifar100-20classes-images.npz") as images, np.load(SHARED / "cifar100-dinov2s.npz") as features:
        rows = open_backbone("dinov2s")(images["images"][:24])
        ours = features["features"][np.flatnonzero((features["labels"] == 0) & features["train"])[:24]].astype(np.float32)
    cosine = (rows * ours).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(ours, axis=1)
    assert cosine.min() > 0.999


@pytest.mark.slow
def test_minilm_knows_what_is_alike():
    needs("minilm")
    pytest.importorskip("transformers", reason="transformers is not installed")
    rows = open_backbone("minilm")(["I lost my card", "my card is gone", "what is the exchange rate"])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert rows.shape == (3, 384)
    assert rows[0] @ rows[1] > 0.6 > rows[0] @ rows[2]


@pytest.mark.slow
def test_efficientnet_gives_1280_numbers():
    needs("efficientnet-lite0")
    pytest.importorskip("torch", reason="torch is not installed")
    images, codes = pictures(6)
    rows = open_backbone("efficientnet-lite0")(images)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert rows.shape == (6, 1280)
    near = (rows @ rows.T - 2 * np.eye(6)).argmax(1)
    assert np.array_equal(codes[near], codes), "the nearest image has the same colour"


# --- mistakes ---


def test_an_unknown_backbone_lists_those_there_are():
    with pytest.raises(GramfoldError, match="unknown backbone 'resnet'; known: dinov2s, minilm"):
        open_backbone("resnet")


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_that_is_missing_says_what_to_install(name, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None)
    with pytest.raises(GramfoldError, match=f"backbone {name} is not installed; install it with: pip install"):
        open_backbone(name)


@pytest.mark.parametrize(("module", "name", "extra"), [("onnxruntime", "onnx:a.onnx", "onnx"), ("transformers", "hf:a", "hf")])
def test_a_missing_extra_says_which_to_install(module, name, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(GramfoldError, match=rf'needs the package {module}; install it with: pip install "gramfold\[{extra}\]"'):
        open_backbone(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("onnx:nowhere.onnx", "no such model file"),
        ("onnx:text.onnx", "not a readable ONNX model"),
        ("python:no_such_module:f", "cannot be imported"),
        ("python:f", "write FILE.py:NAME or python:MODULE:NAME"),
        ("hf:./nowhere", "cannot load backbone"),
    ],
)
def test_a_model_that_is_not_there(name, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "text.onnx").write_text("not a model")
    with pytest.raises(GramfoldError, match=words):
        open_backbone(name)


def test_a_tensor_that_is_not_in_the_model(tokens_file):
    with pytest.raises(GramfoldError, match="no tensor 'nope'; its last ones are"):
        open_backbone(f"onnx:{tokens_file}#nope")
    with pytest.raises(GramfoldError, match="unknown pooling 'max'"):
        open_backbone(f"onnx:{tokens_file}", "max")
