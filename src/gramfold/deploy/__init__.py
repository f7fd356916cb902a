"""What it takes to put sites on real machines: certificates, a proxy, the files of an app."""
