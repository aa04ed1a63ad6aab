"""Attention in torch's place, made from a plan: which way a call goes, and the ways. Decides nothing about models."""
