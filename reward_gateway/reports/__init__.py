"""Reports on recorded runs: the tables of both papers as Markdown and as one HTML file."""
