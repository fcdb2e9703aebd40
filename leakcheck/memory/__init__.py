"""Device memory explained to the byte: allocator replay, ledger, predictor, estimators.

    snapshot.load(path) -> Trace         a torch.cuda.memory snapshot or a trace file
    verdict.judge(trace) -> TraceReport  leak, fragmentation or steady; what each policy needs
    watch.Ledger(model, optimizer, device).take(phase, step) -> LedgerPage
    window.GrowthWindow(device)          what grew between two steps, by category and place
    measured.compare(trace, prediction)  a recording of the real run beside its prediction

Nothing here is imported until it is used; only watch, window, owners, storages and the predictor
need torch.
"""
