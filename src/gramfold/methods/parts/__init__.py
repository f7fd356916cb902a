"""What methods are composed of: choosing by leave-one-out, FedHiP's blend, APFL's refinement, PACE's head."""
