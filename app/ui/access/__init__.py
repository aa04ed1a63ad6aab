"""Access control: logins, the guard of requests, the share tunnel, uploads, the guests' allowlist."""
