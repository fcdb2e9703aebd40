"""One file a framework; the framework is imported inside."""
