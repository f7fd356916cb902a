"""The files of a deployment: what the server runs, what each site fills in, and a README with the commands."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from gramfold import wire
from gramfold.deploy.certificates import write_certificates
from gramfold.deploy.processes import QUIET
from gramfold.deploy.proxy import FLEET, nginx_configuration
from gramfold.deploy.toml import Value, to_toml
from gramfold.errors import FileError, NetworkError
from gramfold.version import __version__

LINK_PORT = 8000
"""The server's port on its own loopback."""
RUN_CONFIG: Mapping[str, Value] = {
    "method": "pace",
    "parameters": "{}",
    "task": "",
    "random-state": 0,
    "minimum-sites": 1,
    "deadline-seconds": 600.0,
    "out": "result",
    "sites": "",
    "max-classes": 1000,
    "release-sites": 3,
    "max-share": 1.0,
    "secure": False,
    "secure-threshold": 2 / 3,
    "dp-eps": 0.0,
    "dp-delta": 1e-5,
}
"""Everything that can be set for a run (`flwr run -c 'method="afl"'`)."""


def write_app(folder: Path, config: Mapping[str, Value]) -> None:
    """An app that Flower runs: a single file, since all its code is in the installed gramfold."""
    unknown = set(config) - set(RUN_CONFIG)
    if unknown:
        raise NetworkError(f"a run has no setting {min(unknown)!r}; it has: {', '.join(RUN_CONFIG)}")
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
    """A folder for the server and one for each site, certificates included, with a README of the next steps."""
    if folder.exists():
        raise FileError(f"{folder} exists; choose a new folder")
    if not sites or len(set(sites)) < len(sites):
        raise NetworkError("name at least one site, and none twice: --sites north,east,south")
    invalid = [name for name in sites if name != wire.file_name(name)]
    if invalid:
        raise NetworkError(f"{invalid[0]!r} is not a valid site name: use letters, digits, - and _")
    server = folder.absolute() / "server"
    write_certificates(server / "keys", host)
    write_app(server / "app", {"minimum-sites": len(sites), "sites": ",".join(sites)})
    connection = {"address": f"127.0.0.1:{LINK_PORT}", "root-certificates": str(server / "keys" / "ca.crt")}
    _write(server / "flwr" / "config.toml", to_toml({"superlink": {"default": "gramfold"}, "superlink.gramfold": connection}))
    _write(server / "nginx.conf", nginx_configuration(host, port, LINK_PORT, str(server / "keys")))
    _write(server / "flower.env", _environment())
    for name in sites:
        place = folder / "sites" / name
        _write(
            place / "site.toml",
            to_toml({"name": name, "server": f"{host}:{port}", "loader": "loader.py:load", "state-dir": "state"}),
        )
        _write(place / "loader.py", LOADER)
        _write(place / "flower.env", _environment())
        _write(place / "ca.crt", (server / "keys" / "ca.crt").read_text())
    for place in (server, *(folder / "sites" / name for name in sites)):
        place.chmod(0o700)  # keys, databases and models are private
    _write(folder / "README.md", readme(sites, host, port))
    _write(folder / ".gitignore", "*.key\nkey\nstate/\n*.db*\n")


def _environment() -> str:
    settings = {**QUIET, "FLWR_HOME": "flwr"}
    return "# Flower without telemetry and update checks\n" + "".join(f"{key}={value}\n" for key, value in settings.items())


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from None


LOADER = '''\
"""This site's data for gramfold. The file stays at the site; the server never sees it and cannot name another."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def load(site: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
    """Features (one row of numbers per sample) and labels; a quarter is held out for testing.

    Return four arrays (X, y, X_test, y_test) to split it yourself. All sites need the same columns, from the same embedding
    model, and labels from the same list. `site` is the content of site.toml. A folder of images or a table needs no loader:
    write `data` (and `backbone`) in its place in site.toml.
    """
    raise NotImplementedError("fill in loader.py: return X (n x d) and y (n)")
'''


def readme(sites: Sequence[str], host: str, port: int) -> str:
    """The steps from these files to a run, command by command."""
    first, address = sites[0], f"{host}:{port}"
    register = "\n".join(f"flwr supernode register {name}.pub gramfold --name {name}" for name in sites)
    return f"""\
# A gramfold federation: {", ".join(sites)}

`server/` is for the central machine, which sites reach as `{address}`. Each `sites/NAME/` is for one site; the commands below
use {first}. Every site keeps its data and its personal model; it sends only the second moments of its features. For who can
see what, and what is not protected, see gramfold's docs/deploy.md.

Every machine needs Python 3.11 or later and the same gramfold, {__version__}, with its Flower extra; from a checkout:

```sh
pip install ".[flower]"
```

## 1. The server

In `server/`. The certificates in `keys/` are for `{host}`; `server.key` stays on this machine. `nginx.conf` and
`flwr/config.toml` contain the path of this folder: update both if you move it. Start the server, which listens on this
machine only. (Under systemd: `WorkingDirectory=` here, `EnvironmentFile=` flower.env, `Restart=always`, `UMask=0077`.)

```sh
set -a; . ./flower.env; set +a; umask 077
flower-superlink --host 127.0.0.1 --port {LINK_PORT} --database link.db --enable-supernode-auth \\
    --ssl-ca-certfile keys/ca.crt --ssl-certfile keys/server.crt --ssl-keyfile keys/server.key
```

Sites connect through nginx, which forwards `{FLEET}` and nothing else. **Never expose port {LINK_PORT}**: anyone who reaches
it can run any program at every site.

```sh
sudo cp nginx.conf /etc/nginx/conf.d/gramfold.conf && sudo nginx -t && sudo systemctl reload nginx
```

## 2. Every site: its data and its key

In the site's copy of `sites/{first}/`. Fill in `loader.py`, or write in `site.toml`, in place of `loader`, `data = "photos"` and
`backbone = "dinov2s"` for a folder of images (`photos/CLASS/IMAGE`), or `data = "table.csv"` and `label-column = "..."` for a
table. Then create a key. The private one, `key`, stays here; send the public one, `key.pub`, to the server as `{first}.pub`, over
a channel that proves it is yours.

```sh
ssh-keygen -q -t ecdsa -b 384 -N "" -C {first} -f key
```

## 3. The server: register the sites

In `server/`, with the sites' `.pub` files. A site that is not registered is rejected.

```sh
set -a; . ./flower.env; set +a
{register}
```

## 4. Every site: start

It keeps running, and answers whenever the server starts a run. `pinned/` has it answer with the gramfold that is installed here,
whatever program the server sends: leave it out only if you trust the server with this machine. (A second site on one machine
needs another port: `--port 9095`.)

```sh
set -a; . ./flower.env; set +a; umask 077
gramfold flower pin pinned
PATH="$PWD/pinned:$PATH" flower-supernode --superlink {address} --root-certificates ca.crt \\
    --auth-supernode-private-key key --node-config site.toml
```

## 5. A run

In `server/`, when `flwr supernode list gramfold` shows the sites online:

```sh
set -a; . ./flower.env; set +a
flwr run app gramfold --stream
gramfold flower outcome result
```

The second line says how it ended, and ends with 2 and the reason if it failed; `flwr run` ends with 0 either way.

Result and report are in `server/result/`; each site's own model is in its `state/`, and `gramfold.load_head` reads it
(`state/pace/head.safetensors`). Run it again when a site has new data or was offline: only what is missing is sent. Settings
are in `app/pyproject.toml`, and can be overridden for one run: `flwr run app gramfold --stream -c 'method="apfl" out="apfl"'`.

A sum of fewer than three sites is not released, nor one that differs from the last by fewer than three: two sums that differ by
one site differ by that site's moments. If all sites agree to it, set `release-sites`.

To take a site out for good, revoke its key (`flwr supernode unregister NODE-ID gramfold`) and erase what it sent; the receipt is
printed and kept in `result/forgotten.jsonl`: `gramfold flower forget {first} --out result`. With the server stopped, `--database
link.db` empties its database too, where a run that was refused leaves uploads. Keep `gramfold-forgotten.jsonl`, beside `result/`,
out of what you restore from backups: its hashes keep a site that a backup brings back from being counted again.

## Hiding uploads from the server

With three sites or more, `secure = true` in `app/pyproject.toml` shows the server the sum of the sites' uploads only. So that it
cannot pose as the other sites, exchange identities without it, before the first such run: `gramfold flower identity` prints a
site's line. Put the lines of all sites into a file, `{{"{first}": "3f0c...", ...}}`, copy it to every site, and name it in each
`site.toml`: `trusted-keys = "sites.json"`. What else a site can ask for there, and what then holds against a server that lies:
gramfold's docs/security_model.md.

## When it does not work

| message | remedy |
| --- | --- |
| `CERTIFICATE_VERIFY_FAILED` at a site | give the site this server's `ca.crt`; it must reach the server as `{host}` |
| `Failed to activate SuperNode` at a site | the server does not know its key: register its `.pub` |
| `Connection attempt failed` at a site | the server or its nginx is down, or a firewall blocks it |
| `403` | the control path is closed from outside: run `flwr` on the server itself |
| `the sum of 2 sites is not released` | wait for more sites, or set `release-sites` if all sites agree |
| `address already in use` | another process uses the port: choose another with `--port` |
"""
