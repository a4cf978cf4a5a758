"""Adapters for trainers, one module each. They need httpx and pydantic, and numpy where whole groups are scored."""
