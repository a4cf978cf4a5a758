"""What callers may use: quotas of API keys, room in this process, and who is refused first when it runs out."""
