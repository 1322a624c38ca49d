"""The cases of ../shared/CASES.md, grouped as there."""
