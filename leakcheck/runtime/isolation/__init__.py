"""Which stage of the training leaks: the run repeated with parts of it left out."""
