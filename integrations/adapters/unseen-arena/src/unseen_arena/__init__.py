"""Adapter of Unseen Arena for Harbor: `arena export harbor` behind the flags that Harbor expects."""
