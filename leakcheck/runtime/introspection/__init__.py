"""Live objects as the interpreter and autograd know them: types, frames, Nodes."""
