"""Test whether attention, linear layers and convolutions are correct on this machine, and make a pretended machine fail like the real one."""
