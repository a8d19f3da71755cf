"""Comparing searches: decoding, word error rates, tables and plots."""
