"""What the process and its devices hold right now, as series of integers."""
