"""Make pages of records: fences, values, tables, charts, where each comes from, and the site around them."""
