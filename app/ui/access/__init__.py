"""Who gets in, and how far: logins, the guard of requests, the share tunnel, uploads, the visitor's fence."""
