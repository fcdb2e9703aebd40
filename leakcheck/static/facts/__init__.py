"""What a file does, as values: extracted once, linked over the project, asked by rules."""
