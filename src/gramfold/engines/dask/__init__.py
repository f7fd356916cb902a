"""Clients on the workers of a Dask cluster (extra `dask`). The cluster is one trust domain: tasks travel by pickle, as Dask sends
them.

    partition   clients that lie side by side; they travel as references (what loads them), or once as samples
    fold        a task for each partition: its clients' uploads, added up there
    merge       pairs of sums, in the order of the partitions, up to one, which names the partitions in it
    finish      a task for each partition: its clients' heads, written there where there is a folder for them

A worker that dies in mid-run costs time only: the scheduler runs again what it held, and a partition is in the sum once, whoever
added it up. Samples that were sent die with their worker: they are sent anew, and the rounds so far run again.
"""

from gramfold.engines.dask.cluster import on_dask

__all__ = ["on_dask"]
