"""Test whether attention is correct on this machine, and make a pretended machine fail like the real one."""
