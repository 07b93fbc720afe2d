"""Agent jobs: a prompt becomes a pull request. Only its ground stands yet.

- `process`: a program that ends when it must.
- `errors`: what can go wrong, without HTTP.
"""
