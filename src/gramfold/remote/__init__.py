"""What any network engine needs: sites, the task they agree on, policies, the sum and who is in it. Knows no transport."""
