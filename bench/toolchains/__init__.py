"""``make toolchains``: small networks as the quantisers of others write them, and what each costs here."""
