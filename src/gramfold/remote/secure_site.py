"""A site's steps in a secure sum. Between two messages its secrets lie in its `state-dir`, and are gone after the last.

    STATE/identity.key            the key that it signs with, made when it is first needed; STATE/identity.pub is its public half
    STATE/known-sites.json        the other sites' public halves, as they were first seen
    STATE/secure/SESSION.safetensors   a sum under way

Whoever the other sites are is the server's word, unless this site's configuration names a file of their public halves
(`trusted-keys`, JSON: name to hex), handed over in some other way: then it takes part with nobody else. Without one a site trusts
what it saw first, and refuses a site whose identity has changed.
"""

import re
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramfold import wire
from gramfold.errors import SecureSumError
from gramfold.methods import ClientData
from gramfold.privacy import DP, Client, Privacy, SecureSum, masks, ranges
from gramfold.privacy.protocol import Confirmations, Inbox, Roster, Survivors
from gramfold.remote import diary, secure_terms
from gramfold.remote.messages import STEP, asked_of
from gramfold.remote.state import made
from gramfold.remote.tasks import task_from_json
from gramfold.wire import Packet

if TYPE_CHECKING:
    from gramfold.remote.site import Answer, Site

IDENTITY, PUBLIC, KNOWN, UNDER_WAY = "identity.key", "identity.pub", "known-sites.json", "secure"
STALE_SECONDS = 24 * 3600
"""A sum that was begun so long ago is over; its secrets are removed."""
_SESSION = re.compile(r"[0-9a-f]{32}")


def step(site: "Site", header: Mapping[str, Any], packets: Mapping[str, Packet]) -> "Answer":
    """The answer to a step's message."""
    masks.require_cryptography()
    session = header.get("session")
    if not isinstance(session, str) or not _SESSION.fullmatch(session):
        raise SecureSumError("a secure sum without a valid session")
    steps: dict[str, Callable[..., Answer]] = {
        "keys": _keys, "share": _share, "mask": _mask, "confirm": _confirm, "unmask": _unmask,
    }  # fmt: skip

    if header.get("step") not in steps:
        raise SecureSumError(f"a secure sum has no step {header.get('step')!r}")
    folder = (site.hold() if header["step"] != "mask" else Path(str(site.config.get("state-dir")))) / UNDER_WAY
    made(folder)
    return steps[header["step"]](site, folder / f"{session}.safetensors", header, packets)


def _keys(site: "Site", file: Path, header: Mapping[str, Any], packets: Mapping[str, Packet]) -> "Answer":
    site.method(header)  # refuse before anything is done
    site.check_remembered(header)
    secure_terms.check_threshold(site.policy, header.get("threshold"))
    task = task_from_json(header["task"])
    train = site.client(task).train()
    why = site.abstains(train, task)
    if why is not None:
        site.note(method=header["method"], secure=header["session"], abstained=why, bytes=0)
        return {"abstains": why}, {}
    for old in file.parent.glob("*.safetensors"):
        if time.time() - old.stat().st_mtime > STALE_SECONDS:
            old.unlink(missing_ok=True)
    if file.exists():
        raise SecureSumError("a secure sum of this name is under way")
    client = Client.begin(site.name, header["session"], identity(file.parent.parent), train.n)
    _keep(file, client)
    return {}, {STEP: client.keys.pack()}


def _share(site: "Site", file: Path, header: Mapping[str, Any], packets: Mapping[str, Packet]) -> "Answer":
    client, roster = _kept(file), Roster.unpack(packets[STEP])
    if roster.threshold != header.get("threshold"):
        raise SecureSumError("the list of clients has another threshold than the run")
    secure_terms.check_threshold(site.policy, roster.threshold)
    site.policy.check_sum(len(roster.clients))
    known = file.parent.parent / KNOWN
    trusted = _trusted(site, known, roster)
    shares = client.share(roster, trusted)
    _keep(file, client)
    if not site.config.get("trusted-keys"):
        wire.write_sealed(known, {"keys": trusted})
    return {}, {STEP: shares.pack()}


def _mask(site: "Site", file: Path, header: Mapping[str, Any], packets: Mapping[str, Packet]) -> "Answer":
    work = site.work(header, packets)
    client = _kept(file)  # now that the folder is this message's alone
    site.policy.check_times("", diary.released(work.state))  # every sum is another: its session is the server's word
    train, method = work.client.train(), work.method
    method.check_weights(train)
    data = ClientData(site.name, train, {} if method.rounds == 1 else dict(work.memory))
    implied, privacy = method.asked(work.broadcast).implied, _privacy(header)
    assert client.roster is not None
    clients = len(client.roster.clients)
    exact = method.local(data, work.broadcast)
    # a round of learning takes two thirds of the samples, here a few more or fewer
    part = min(max(getattr(exact, "n", train.n) / max(train.n, 1), 0.5), 1.0)
    known = clients if site.config.get("trusted-keys") else None  # a server that invents sites would share the noise out to them
    upload = privacy.noisy(exact, implied, known, train.weights)
    public = upload.public()
    vector = ranges.plan(public, implied, clients).encode(upload.vector())
    features, space = secure_terms.features_of(public), secure_terms.space_of(public, train.digest())
    least = secure_terms.fewest_samples(site.policy, features, space, part, client.roster, work.state)
    masked = client.mask(Inbox.unpack(packets[STEP]), vector, asked_of(header, work.broadcast), least)
    _keep(file, client)
    work.remember(header["session"], data.memory)
    packed = masked.pack()
    site.note(
        method=method.name, session=work.folder.name, run=work.run, round=header["round"],
        upload=header["session"], secure=True, sites=clients, dp=header.get("dp"), samples=train.n, features=features,
        space=space, asked=client.asked, bytes=packed.wire_bytes, sha256=packed.digest(), release=packed.digest(),
    )  # fmt: skip
    return {"public": public, "noise": privacy.share(known)}, {STEP: packed}


def _confirm(site: "Site", file: Path, header: Mapping[str, Any], packets: Mapping[str, Packet]) -> "Answer":
    client, survivors = _kept(file), Survivors.unpack(packets[STEP])
    site.policy.check_sum(len(set(survivors.names)))
    confirmed = client.confirm(survivors, identity(file.parent.parent))
    _keep(file, client)
    return {}, {STEP: confirmed.pack()}


def _unmask(site: "Site", file: Path, header: Mapping[str, Any], packets: Mapping[str, Packet]) -> "Answer":
    client, confirmations = _kept(file), Confirmations.unpack(packets[STEP])
    try:
        revealed = client.unmask(confirmations)
    finally:
        file.unlink(missing_ok=True)  # before the answer leaves: no step is taken twice
        wire.sync_folder(file.parent)
    return {}, {STEP: revealed.pack()}


def _privacy(header: Mapping[str, Any]) -> Privacy:
    noise = header.get("dp")
    return Privacy(SecureSum(header["threshold"]), None if noise is None else DP(noise["eps"], noise["delta"]))


def _keep(file: Path, client: Client) -> None:
    wire.write_atomically(file, *client.pack().pieces())


def _kept(file: Path) -> Client:
    if not file.exists():
        raise SecureSumError("no secure sum of this name is under way here")
    return Client.unpack(Packet.from_bytes(wire.read(file)))


# --- who is who ---


def identity(state: Path) -> bytes:
    """The site's private key for signing, made where there is none."""
    file = state / IDENTITY
    if not file.exists():
        wire.write_atomically(file, secrets.token_bytes(32))
    private = wire.read(file)
    public = masks.identity_of(private).hex()
    if not (state / PUBLIC).exists():
        wire.write_atomically(state / PUBLIC, f"{public}\n".encode(), public=True)
    return private


def _trusted(site: "Site", known: Path, roster: Roster) -> dict[str, str]:
    """The identities to go by: those in the site's own file, or those first seen."""
    listed = site.config.get("trusted-keys")
    claimed = {keys.name: keys.identity for keys in roster.clients}
    if not listed:
        return {**claimed, **(_read(known, wire.read_sealed) if known.exists() else {})}
    own = _read(Path(str(listed)), lambda file: {"keys": wire.read_json(wire.read(file))})  # written by hand
    return {**own, site.name: claimed.get(site.name, "")}


def _read(file: Path, reader: Callable[[Path], dict[str, Any]]) -> dict[str, str]:
    try:
        found = reader(file).get("keys")
        if not isinstance(found, dict) or not all(isinstance(part, str) for pair in found.items() for part in pair):
            raise ValueError("it is no object of names and keys")
    except (ValueError, TypeError) as error:
        raise SecureSumError(f"cannot read the keys of other sites in {file.name}: {error}") from None
    return {name: key.strip() for name, key in found.items()}
