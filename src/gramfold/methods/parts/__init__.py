"""Building blocks of methods: choosing by leave-one-out, FedHiP's blend, APFL's refinement, PACE's head."""
