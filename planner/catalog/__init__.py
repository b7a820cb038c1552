"""What the catalog holds, as answers: offers, types, health, history, changes; tables of `catalogs` come in."""
