"""What runs in the untrusted process. Imports nothing of the judge, and knows nothing worth stealing."""
