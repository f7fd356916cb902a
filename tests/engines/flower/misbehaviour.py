"""Loaders of sites that go wrong. A loader is the site's own code, so it can make its site send what no honest one would."""

import time

import numpy as np

from gramfold.moments import Moments
from gramfold.remote import samples
from gramfold.wire import Packet


def raises(site):
    raise OSError("the archive is not mounted")


def sleeps(site):
    time.sleep(3600)


def sends_nan(site):
    _send(lambda gram: np.where(np.arange(gram.size) == 3, np.nan, gram))
    return samples.load(site)


def sends_wrong_shape(site):
    _send(lambda gram: gram[:-1])
    return samples.load(site)


def _send(changed):
    honest = Moments.pack

    def pack(self):
        packet = honest(self)
        return Packet({**packet.arrays, "gram": changed(packet["gram"])}, packet.meta, packet.triangular)

    Moments.pack = pack
