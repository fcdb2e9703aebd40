"""Who holds what grows, and which line adds to it."""
