"""A site: its own data, and the files on its own disk. Independent of Flower; a message is a header and packets.

    STATE/site.json                                whose folder it is: one site's only
    STATE/site.key                                 a random number of its own, which its splits and its noise are drawn from
    STATE/sent.jsonl                               what left the site and when, and what was refused
    STATE/METHOD/head.safetensors                  the site's head, for `gramfold.load_head`, and its card (head.card.md, .json)
    STATE/METHOD/SESSION/memory.safetensors        the method's memory between messages
    STATE/METHOD/SESSION/received.safetensors      arrays received earlier, which are not sent again
    STATE/METHOD/SESSION/upload-ID.safetensors     the moments that the site sent
    STATE/METHOD/SESSION/check.json                what is wrong with its table beside the others', for the site alone
    STATE/METHOD/SESSION/places.json               which of them a server's sum may hold

Every file is written atomically. A session is one method with its parameters on one task; the site derives its name itself,
and the location of its data comes from its own configuration only, never from a message.
"""

import contextlib
import functools
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.evaluation import Evaluation, Scored, score_each
from gramfold.federation import Client, Dataset, Samples, Task, load_npz
from gramfold.federation.blocks import held_out_size
from gramfold.federation.given import ClientArrays, given_client, load_source
from gramfold.heads import Head
from gramfold.imports import import_from
from gramfold.methods import ClientData, Method, on_targets, saved_method
from gramfold.methods.finishing import finished, shared_head
from gramfold.numerics import inputs
from gramfold.numerics.arrays import to_numpy
from gramfold.origin import Origin
from gramfold.remote import diary, figures, own_check, secure_site
from gramfold.remote.messages import BROADCAST, REPLACED, UPLOAD, Message
from gramfold.remote.outside import SiteError, inside, outside
from gramfold.remote.policy import PROTECTIONS, Policy
from gramfold.remote.raw import HELD_OUT, RawData
from gramfold.remote.state import held, made, secret
from gramfold.remote.tasks import session_of, task_from_json
from gramfold.remote.work import Work
from gramfold.report import make_card, write_card
from gramfold.sources import is_raw
from gramfold.version import __version__
from gramfold.wire import Packet, file_name
from gramfold.wire.npz import read_arrays

Answer = tuple[dict[str, Any], dict[str, Packet]]


def head_file(state: str | Path, method: str) -> Path:
    """Where a site keeps its head for a method."""
    return Path(state) / file_name(method) / "head.safetensors"


class Site:
    """Answers messages. `config` is the node's configuration: `name`, `state-dir`, and `loader` or `data`: an .npz file, or a
    folder of images or a table, with a `backbone` where they are not numbers."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.name = str(config.get("name", "")).strip()
        self._until_answered = contextlib.ExitStack()

    def answer(self, kind: str, read: Callable[[], Message]) -> Message:
        """The answer to a message; any error becomes one line in it, with the site's name."""
        mine, begun = {"site": self.name, "gramfold": __version__}, time.monotonic()
        try:
            if not self.name:
                raise SiteError("this node's configuration gives no `name`; add one, different at every site")
            message = read()
            header, packets = message.header, message.packets
            if header.get("gramfold") != __version__:
                theirs = header.get("gramfold")
                raise SiteError(f"the server runs gramfold {theirs}, this site {__version__}; install the same")
            self.policy.check_run(header)
            with contextlib.ExitStack() as self._until_answered:
                reply, parts = getattr(self, f"_{kind}")(header, packets)
        except Exception as error:
            code = secrets.token_hex(4)
            self._note_refusal(kind, inside(error), code)
            return Message({**mine, "error": outside(error, code, self._columns())})
        return Message({**mine, **reply, "seconds": time.monotonic() - begun}, parts)

    def _note_refusal(self, kind: str, reason: str, code: str) -> None:
        with contextlib.suppress(GramfoldError):  # where nothing can be written, nothing was sent either
            self.note(asked=kind, refused=reason, code=code)

    def note(self, **entry: Any) -> None:
        """A line of the site's diary; `server` is the site's own word for whom it answers, where its configuration has one."""
        server = {"server": str(self.config["server"])} if self.config.get("server") else {}
        diary.note(self._state(), **server, **entry)

    def _state(self) -> Path:
        state = self.config.get("state-dir")
        if not state:
            raise SiteError("this node's configuration gives no `state-dir`, where the site keeps its head")
        return Path(str(state))

    def _columns(self) -> list[str]:
        """The names that its table's description tells the server anyway."""
        with contextlib.suppress(Exception):
            return sorted(self.raw.source.items) if self.raw is not None and self.raw.is_table else []
        return []

    @functools.cached_property
    def policy(self) -> Policy:
        return Policy.read(self.config)

    # --- its data ---

    @functools.cached_property
    def raw(self) -> RawData | None:
        """Its folder of images or its table, where it has one."""
        data = str(self.config.get("data") or "")
        return RawData(self.config) if self.config.get("backbone") or (data and is_raw(data)) else None

    def source(self, task: Task | None) -> ClientArrays:
        """(X, y) or (X, y, X_test, y_test), from the data or the loader that the configuration names."""
        data, loader = self.config.get("data"), self.config.get("loader")
        if bool(data) == bool(loader):
            raise SiteError("this node's configuration must give either `data` (an .npz file) or `loader` (module:function)")
        if loader:
            return load_source(self.name, _from_loader(str(loader), self.config))
        dataset = self._dataset(task)
        if task is not None and task.origin is not None:
            task.origin.require(dataset.origin, "this site's data")
        return load_source(self.name, dataset.splits())

    def _dataset(self, task: Task | None) -> Dataset:
        if self.raw is not None:
            return self.raw.dataset(task)
        what: dict[str, Any] = {"regression": bool(self.config.get("regression"))}
        if task is not None and task.targets:
            what = {"targets": task.targets, "names": task.labels or task.names}
        return load_npz(str(self.config["data"]), whole=False, **what)

    def _blocks(self, task: Task | None) -> np.ndarray | None:
        """What its samples are part of; its training samples, where its data says which these are."""
        if self.config.get("loader"):
            return None
        return self._dataset(task).training_blocks

    def client(self, task: Task) -> Client:
        """Its samples. Where they have no split of their own it is the site's: a server that chose it could move rows about."""
        seed = int.from_bytes(secret(self._state())[:4], "big")
        return given_client(self.name, self.source(task), replace(task, seed=seed), HELD_OUT, self._blocks(task))

    def _task(self, header: Mapping[str, Any], packets: Mapping[str, Packet]) -> Answer:
        """A description of its data."""
        if self.raw is not None and self.raw.is_table:
            return self._described_table(self.raw), {}
        source = self.source(None)
        X, y = source[0], to_numpy(source[1])
        described: dict[str, Any] = {"inputs": int(np.prod(X.shape[1:])), "shape": list(X.shape[1:]) if X.ndim > 2 else []}
        described |= self._origin()
        targets: np.ndarray = np.concatenate([to_numpy(part) for part in source[1::2]])
        listed = None if self.raw is not None else _listed_classes(self.config.get("data"))
        if listed is not None:
            described |= {"labels": listed, "outputs": len(listed)}
        elif y.ndim > 1 or (y.dtype.kind == "f" and (y != np.rint(y)).any()):
            described |= {"labels": None, "outputs": int(np.prod(y.shape[1:]))}
        else:
            found = inputs.encode(inputs.labels(targets, len(targets), f"client {self.name!r}"))[1]
            described |= {"labels": list(found), "outputs": len(found)}
        train = len(y) if len(source) == 4 else len(y) - int(held_out_size(np.array(len(y)), HELD_OUT))
        return {**described, "declared": listed is not None, "samples": train}, {}

    def _origin(self) -> dict[str, Any]:
        """What made its features, where that is known."""
        if self.raw is not None:
            return self.raw.description()
        found = {} if self.config.get("loader") else read_arrays(Path(str(self.config["data"])), ("origin",))
        return {key: json.loads(Origin.from_json(str(text)).to_json()) for key, text in found.items()}

    def _described_table(self, raw: RawData) -> dict[str, Any]:
        """A table is described before it is numbers: by its columns' statistics, of which the sites' encoder is made."""
        source, described = raw.source, raw.description()
        if source.labels is None:
            raise SiteError("its table has no labels; name them with `label-column` in this node's configuration")
        n = raw.statistics.rows
        if self.policy.require or n < self.policy.samples:
            raise SiteError(
                "a table's statistics travel in the clear, and this site's policy asks for more; give features instead of a table"
            )
        if source.regression:
            described |= {"labels": None, "outputs": source.labels.shape[1]}
        else:
            labels = inputs.encode(source.labels)[1]
            described |= {"labels": list(labels), "outputs": len(labels)}
        if self.config.get("state-dir"):
            released = {name: list(column.words) for name, column in raw.statistics.by_column.items() if column.words}
            self.note(asked="task", statistics=sorted(source.items), words=released)
        return {**described, "inputs": len(source.items), "shape": [], "declared": False, "samples": n}

    # --- its work ---

    def _local(self, header: Mapping[str, Any], packets: Mapping[str, Packet]) -> Answer:
        """Its upload; only the upload's id where the server has already counted it."""
        self.policy.check_plain()
        self.check_remembered(header)
        work = self.work(header, packets)
        train = work.client.train()
        why = self.abstains(train, work.task)
        if why is not None:
            self.note(method=work.method.name, session=work.folder.name, run=work.run, abstained=why, bytes=0)
            return {"abstains": why}, {}
        name = work.upload_id(self.name, header["round"], train)
        self.policy.check_times(name, diary.released(work.state))
        reply, parts = self._upload(header, work, train, name)
        sent = {"bytes": parts[UPLOAD].wire_bytes, "sha256": parts[UPLOAD].digest()} if UPLOAD in parts else {"bytes": 0}
        replaced = {"replaces": reply["replaces"]} if "replaces" in reply else {}
        self.note(
            method=work.method.name, session=work.folder.name, run=work.run, round=header["round"], sum=header.get("ledger", ""),
            upload=name, release=name, samples=train.n, **sent, **replaced,
        )  # fmt: skip
        return reply, parts

    def _upload(self, header: Mapping[str, Any], work: Work, train: Samples, name: str) -> Answer:
        counted = [entry for entry in header.get("counted", ()) if isinstance(entry, str)]
        if name in counted and work.memory_of == name:
            return {"upload": name, "counted": True}, {}
        fresh = {} if work.method.rounds == 1 else work.memory
        work.method.check_weights(train)
        data = ClientData(self.name, train, dict(fresh))
        upload = work.method.sent(data, work.broadcast)
        work.remember(name, data.memory)
        packed = upload.pack()
        if work.method.rounds > 1:
            return {"upload": name, "data": self._mark(train)}, {UPLOAD: packed}
        replaced = work.swap_upload(name, packed, counted, str(header.get("ledger", "")))
        if name in counted:
            return {"upload": name, "counted": True}, {}
        if replaced is None:
            return {"upload": name}, {UPLOAD: packed}
        return {"upload": name, "replaces": replaced[0]}, {UPLOAD: packed, REPLACED: replaced[1]}

    def _mark(self, train: Samples) -> str:
        """The same for the same samples in all runs and rounds, and nothing to anybody else: the site's own key is in it."""
        return hmac.new(secret(self._state()), train.digest().encode(), "sha256").hexdigest()

    def abstains(self, train: Samples, task: Task) -> str | None:
        """Why it receives but does not contribute; None if it does."""
        return self.policy.abstains(train, task, bool(self.config.get("regression")))

    def check_remembered(self, header: Mapping[str, Any]) -> None:
        """Raise, before anything is computed or sent, where the server says that this site was taken out for good."""
        if hashlib.sha256(self.name.encode()).hexdigest() in header.get("forgotten", ()):
            raise SiteError("it was forgotten there, and is not taken in again; choose another `out` for it")

    def _secure(self, header: Mapping[str, Any], packets: Mapping[str, Packet]) -> Answer:
        """A step of a secure sum."""
        return secure_site.step(self, header, packets)

    def _personalize(self, header: Mapping[str, Any], packets: Mapping[str, Packet]) -> Answer:
        """Compute and keep its head; the server receives only its figures, as far as they may leave."""
        work = self.work(header, packets)
        train, test = work.client.train(), work.client.test()
        # for unbiased estimates a method must know whether its own samples are in the sum
        contributed = bool(work.memory_of) and header.get("upload") == work.memory_of
        client = ClientData(self.name, train, dict(work.memory), contributed)
        head = finished(work.method.personalize(client, work.broadcast), work.method, client, work.broadcast, work.task)
        everyones = shared_head(work.method, work.broadcast, work.task)
        path, ((scored, shared),) = head_file(work.state, work.method.name), score_each([head], everyones, [test])
        made(path.parent)
        head.save(path)
        write_card(path, self._card(head, work, train, scored, header))
        try:
            return self._figures(header, work, head, scored, shared), {}
        except figures.WithheldError as why:
            return {"withheld": str(why)}, {}

    def _figures(
        self, header: Mapping[str, Any], work: Work, head: Head, scored: Scored, shared: Scored | None
    ) -> dict[str, Any]:
        """What the server is told of the head, and of the shared one; raises `WithheldError` where that is nothing."""
        train, test = work.client.train(), work.client.test()
        if any(header.get(key) for key in PROTECTIONS):  # what they hide, how many samples are of which class, figures hide too
            scored, shared = scored.without_classes(), None if shared is None else shared.without_classes()
        upload = str(header.get("upload") or "")
        # equal for the same question about the same samples: asked again, the same figures may leave again
        name = figures.identity(work.folder.name, work.run, upload, work.asked(), train.digest(), test.digest())
        if work.method.rounds:
            release = {"of": figures.entitled(work.state, upload, work.run, self.policy.figures, name)}
        else:  # no upload: the figures are the release
            release = {"release": name}
            figures.check_alone(self.policy, self.abstains(train, work.task), name, diary.released(work.state))
        eps = figures.policy_eps(self.policy, header)
        if eps is None:
            told = figures.released(train.n, scored, shared, head.chosen)
        else:
            told = figures.with_noise(work.state, name, shared, eps, head.labels is not None)
        self.note(
            method=work.method.name, session=work.folder.name, run=work.run, sum=header.get("ledger", ""),
            figures=name, told=told, bytes=len(json.dumps(told)), **release,
        )  # fmt: skip
        return told

    def _card(self, head: Head, work: Work, train: Samples, scored: Scored, header: Mapping[str, Any]) -> dict[str, Any]:
        """What the site knows of its head; figures of others stay with them."""
        figures = Evaluation.of(scored, head.labels is not None).for_card()
        sizes = {"training_samples": train.n, "test_samples": scored.n, "training_samples_of_all": work.task.samples}
        state = {"version": work.packet.digest()[:16], "run": work.run, "seed": work.task.seed}
        had = [words for key, words in PROTECTIONS.items() if header.get(key)]
        return make_card(
            head, whose=f"site {self.name}", data=sizes, figures=figures, federation=state, protections=had
        )  # fmt: skip

    def hold(self) -> Path:
        """The state folder, this message's alone until it is answered."""
        state = self._state()
        self._until_answered.enter_context(held(state, self.name))
        return state

    def work(self, header: Mapping[str, Any], packets: Mapping[str, Packet]) -> Work:
        state = self._state()
        task = task_from_json(header["task"])
        method = on_targets(self.method(header), task)
        folder = state / file_name(method.name) / session_of(method, task)
        self.hold()
        work = Work(method, state, folder, str(header["run"]), task, self.client(task), packets[BROADCAST])
        self.policy.check_maps(work.broadcast, task.inputs)
        own_check.note(folder, self.raw, task)
        return work

    def method(self, header: Mapping[str, Any]) -> Method:
        """The method that a message names. A method given as module:Class is imported only if this site's configuration lists
        it (or `*`)."""
        spec = str(header["method"])
        allowed = {name.strip() for name in str(self.config.get("methods", "")).split(",")}
        if ":" in spec and not allowed & {spec, "*"}:
            raise SiteError(f"this site does not allow method {spec!r}; add it to `methods` in its configuration")
        return saved_method(spec, header["parameters"])


def _listed_classes(path: Any) -> list[str] | None:
    """The class names that a data file lists."""
    if not path:
        return None
    found = read_arrays(Path(str(path)), ("classes",))
    return found["classes"].astype(str).tolist() if found else None


_MUST = "it must return (X, y) or (X, y, X_test, y_test)"


class _NoSamplesError(TypeError):
    """What a loader returned is something else."""


def _from_loader(spec: str, config: Mapping[str, Any]) -> ClientArrays:
    """The return value of the site's own function, called with the node's configuration."""
    place, _, name = spec.rpartition(":")
    if not place:
        raise SiteError(f"loader {spec!r} must be written as module:function or FILE.py:function")
    try:
        load: Callable[[dict[str, Any]], ClientArrays] = getattr(import_from(place), name)
        loaded = load(dict(config))
        if not isinstance(loaded, tuple):
            raise _NoSamplesError(f"{_MUST}, not {type(loaded).__name__}")
        return loaded
    except Exception as error:
        words = f"loader {Path(place).name}:{name} failed: {type(error).__name__}"
        raise SiteError(f"{words}: {_MUST}" if isinstance(error, _NoSamplesError) else words, f"{words}: {error}") from None
