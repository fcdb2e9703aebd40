"""A running loop in, trends and suspects out; imports torch only if the program did."""
