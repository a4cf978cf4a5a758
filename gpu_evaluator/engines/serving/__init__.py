"""What engines behind an HTTP server share: the server as a child process, calls to it, and several at a time."""
