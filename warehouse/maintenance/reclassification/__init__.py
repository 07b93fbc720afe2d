"""Stored hits under the current rules.

- `verdicts`: Columns of stored hits under the current rules, without losing the verdict on their agent.
- `diff`: Differences between stored classifications and those of the current rules.
- `reclassify`: Apply the current rules to stored hits.
"""
