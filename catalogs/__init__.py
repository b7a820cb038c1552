"""What can be bought: instance types, offers, accelerators and tariffs with dates and sources."""
