"""Source text in, findings out; never imports torch."""
