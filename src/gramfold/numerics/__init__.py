"""Arrays, BLAS, threads and random streams: the numerical foundations."""
