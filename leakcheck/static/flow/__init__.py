"""The abstract interpreter: what carries an autograd graph, and where such graphs pile up."""
