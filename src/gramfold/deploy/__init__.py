"""Deployment on real machines: certificates, a proxy, the files of an app."""
