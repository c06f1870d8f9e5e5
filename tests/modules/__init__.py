"""Modules as candidates: right ones of several styles, wrong ones, and ones that keep what they must not."""
