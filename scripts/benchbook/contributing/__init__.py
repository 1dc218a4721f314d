"""Begin a change, report what it does to numbers and claims, and propose or publish it."""
