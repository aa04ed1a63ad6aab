"""Who may help: codes, pairing, certificates, and the list of machines that were let in."""
