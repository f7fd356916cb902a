"""The files of an app of one's own: what the server runs, what each site fills in, and a page that says how."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from gramfold import wire
from gramfold.deploy.certificates import write_certificates
from gramfold.deploy.processes import QUIET
from gramfold.deploy.proxy import FLEET, nginx_configuration
from gramfold.deploy.toml import Value, to_toml
from gramfold.errors import GramfoldError
from gramfold.version import __version__

LINK_PORT = 8000
"""Where a server listens on its own loopback."""
RUN_CONFIG: Mapping[str, Value] = {
    "method": "pace",
    "parameters": "{}",
    "task": "",
    "seed": 0,
    "minimum-sites": 1,
    "deadline-seconds": 600.0,
    "out": "result",
    "sites": "",
}
"""Everything that can be set for a run (`flwr run -c 'method="afl"'`)."""


def write_app(folder: Path, config: Mapping[str, Value]) -> None:
    """An app that Flower runs: a single file, since all of its code is the gramfold that is installed."""
    unknown = set(config) - set(RUN_CONFIG)
    if unknown:
        raise GramfoldError(f"a run has no setting {min(unknown)!r}; it has: {', '.join(RUN_CONFIG)}")
    project = {
        "name": "gramfold-app",
        "version": __version__,
        "description": "Personalised federated learning in closed form",
        "license": "Apache-2.0",
        "dependencies": [f"gramfold[flower]=={__version__}"],
    }
    components = {"serverapp": "gramfold.engines.flower.server_app:app", "clientapp": "gramfold.engines.flower.client_app:app"}
    tables = {
        "project": project,
        "tool.flwr.app": {"publisher": "gramfold"},
        "tool.flwr.app.components": components,
        "tool.flwr.app.config": {**RUN_CONFIG, **config},
    }
    _write(folder / "pyproject.toml", to_toml(tables).lstrip())


def write_project(folder: Path, sites: Sequence[str], host: str, port: int) -> None:
    """A folder for the server and one to hand to each site, certificates included, with a README that takes it from there."""
    if folder.exists():
        raise GramfoldError(f"{folder} exists; choose a new folder")
    if not sites or len(set(sites)) < len(sites):
        raise GramfoldError("name at least one site, and none twice: --sites north,south")
    strange = [name for name in sites if name != wire.file_name(name)]
    if strange:
        raise GramfoldError(f"{strange[0]!r} cannot be a site's name: use letters, digits, - and _")
    server = folder.absolute() / "server"
    write_certificates(server / "keys", host)
    write_app(server / "app", {"minimum-sites": len(sites), "sites": ",".join(sites)})
    connection = {"address": f"127.0.0.1:{LINK_PORT}", "root-certificates": str(server / "keys" / "ca.crt")}
    _write(server / "flwr" / "config.toml", to_toml({"superlink": {"default": "gramfold"}, "superlink.gramfold": connection}))
    _write(server / "nginx.conf", nginx_configuration(host, port, LINK_PORT, str(server / "keys")))
    _write(server / "flower.env", _environment())
    for name in sites:
        place = folder / "sites" / name
        _write(place / "site.toml", to_toml({"name": name, "loader": "loader.py:load", "state-dir": "state"}))
        _write(place / "loader.py", LOADER)
        _write(place / "flower.env", _environment())
        _write(place / "ca.crt", (server / "keys" / "ca.crt").read_text())
    for place in (server, *(folder / "sites" / name for name in sites)):
        place.chmod(0o700)  # keys, books and models are nobody else's business
    _write(folder / "README.md", readme(sites, host, port))
    _write(folder / ".gitignore", "*.key\nkey\nstate/\n*.db*\n")


def _environment() -> str:
    settings = {**QUIET, "FLWR_HOME": "flwr"}
    return "# what Flower is to know; nothing that phones home\n" + "".join(f"{key}={value}\n" for key, value in settings.items())


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise GramfoldError(f"cannot write {path}: {error.strerror}") from None


LOADER = '''\
"""This site's data, as gramfold gets it. The file stays at the site; the server never sees it, nor can it name another."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def load(site: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
    """Features (one row of numbers per sample) and labels; a quarter is held out for testing.

    Return four arrays (X, y, X_test, y_test) to split it yourself. All sites need the same columns, from the same embedding
    model, and labels from the same list. `site` is what site.toml says.
    """
    raise NotImplementedError("fill in loader.py: return X (n x d) and y (n)")
'''


def readme(sites: Sequence[str], host: str, port: int) -> str:
    """How to get from these files to a run, command by command."""
    first, address = sites[0], f"{host}:{port}"
    register = "\n".join(f"flwr supernode register {name}.pub gramfold --name {name}" for name in sites)
    return f"""\
# A gramfold federation: {", ".join(sites)}

`server/` is for the machine in the middle, which sites reach as `{address}`. `sites/NAME/` is for one site each, below for
{first}. Every site keeps its data and its personal model; what it sends are the second moments of its features. Who can
see what, and what is not protected, is in gramfold's docs/deploy.md.

Everywhere, Python 3.11 or later and the same gramfold, {__version__}, with its Flower extra; from a checkout:

```sh
pip install ".[flower]"
```

## 1. The server

In `server/`. The certificates in `keys/` are for `{host}`; `server.key` stays on this machine. `nginx.conf` and
`flwr/config.toml` name this very folder: change that in both if you move it. Start the server, which listens on this machine
only. (Under systemd: `WorkingDirectory=` here, `EnvironmentFile=` flower.env, `Restart=always`.)

```sh
set -a; . ./flower.env; set +a
flower-superlink --host 127.0.0.1 --port {LINK_PORT} --database link.db --enable-supernode-auth \\
    --ssl-ca-certfile keys/ca.crt --ssl-certfile keys/server.crt --ssl-keyfile keys/server.key
```

Sites come in through nginx, which lets through `{FLEET}` and nothing else. **Open port {LINK_PORT} to nobody**: whoever
reaches it can run any program at every site.

```sh
sudo cp nginx.conf /etc/nginx/conf.d/gramfold.conf && sudo nginx -t && sudo systemctl reload nginx
```

## 2. Every site: its data and its key

In the site's copy of `sites/{first}/`. Fill in `loader.py`, then make a key. The private one, `key`, stays; send the public
one, `key.pub`, to the server as `{first}.pub`, over a channel by which the server knows that it is yours.

```sh
ssh-keygen -q -t ecdsa -b 384 -N "" -C {first} -f key
```

## 3. The server: who may come in

In `server/`, with the sites' `.pub` files. A site that is not registered is turned away.

```sh
set -a; . ./flower.env; set +a
{register}
```

## 4. Every site: start

It stays, and answers whenever the server runs something. (A second site on one machine needs a port of its own: `--port 9095`.)

```sh
set -a; . ./flower.env; set +a
flower-supernode --superlink {address} --root-certificates ca.crt --auth-supernode-private-key key --node-config site.toml
```

## 5. A run

In `server/`, when `flwr supernode list gramfold` shows the sites online:

```sh
set -a; . ./flower.env; set +a
flwr run app gramfold --stream
```

Result and report are in `server/result/`; each site's own model is in its `state/`, and `gramfold.load_head` reads it
(`state/pace/head.safetensors`). Run it again when a site has new data or was away: only what is missing travels. Settings
are in `app/pyproject.toml`, and may be given for one run: `flwr run app gramfold --stream -c 'method="apfl" out="apfl"'`.

## When it does not work

| it says | do |
| --- | --- |
| `CERTIFICATE_VERIFY_FAILED` at a site | give it this server's `ca.crt`; it must reach the server as `{host}` |
| `Failed to activate SuperNode` at a site | the server does not know its key: register its `.pub` |
| `Connection attempt failed` at a site | the server or its nginx is down, or a firewall is in between |
| `403` | that is the control path from outside: use `flwr` on the server itself |
| `address already in use` | another process has the port: choose another with `--port` |
"""
