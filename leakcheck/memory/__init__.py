"""Device memory explained to the byte: allocator replay, ledger, predictor, estimators."""
