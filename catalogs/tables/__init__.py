"""What a table of the catalog is: its columns and words (columns.csv), named arrays, accelerators and regions."""
