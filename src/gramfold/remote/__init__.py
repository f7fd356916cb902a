"""What any network engine needs: sites, the task they agree on, policies, and the ledger of uploads. Transport-agnostic."""
