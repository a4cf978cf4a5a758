"""Studies on recorded or synthetic batches: replay under another cutoff, pool or evaluator, and capacity planning."""
