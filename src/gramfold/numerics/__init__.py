"""Arrays, BLAS, threads and random streams: what the mathematics stands on."""
