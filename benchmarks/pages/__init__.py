"""What pages say of result files, a file for each page's tables; `benchmarks.tables` puts them where they belong."""
